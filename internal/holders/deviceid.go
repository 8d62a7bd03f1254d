package holders

import (
	"regexp"
	"strings"
	"sync"
)

// reference names a device as the kubelet does, or as the ResourceSlices of its node do.
type reference struct {
	// uuid is the uuid of a board, GPU-…, or of a MIG device, MIG-…, in lower case; "" if minor
	// names the board.
	uuid string
	// minor is the number of the board's device file: 0 of /dev/nvidia0.
	minor string
	// instance is the id of the GPU instance on the board; "" is the whole board, or
	// unknown.
	instance string
}

// deviceIDs are the forms of the device ids of NVIDIA's plugin and of those of GKE and EKS, in
// lower case and without the number of a share (::3). The groups are fields of reference.
var deviceIDs = sync.OnceValue(func() (forms []*regexp.Regexp) {
	for _, form := range []string{
		`mig-(?P<uuid>gpu-[^/: ]+)/(?P<instance>\d+)/\d+`,                // a MIG device, by drivers before R470
		`(?P<uuid>gpu-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})-\d+`,     // a share of a board, by HAMi
		`(?P<uuid>(?:gpu|mig)-[^/: ]+)`,                                  // a board, a MIG device
		`nvidia(?P<minor>\d{1,9})(?:/gi(?P<instance>\d+))?(?:/vgpu\d+)?`, // the same by the number of the device file
	} {
		forms = append(forms, regexp.MustCompile(`^`+form+`(?:::\d+)?$`))
	}
	return forms
})

// parseDeviceID reads a device id of one of NVIDIA's resources. ok is false for an id that names no
// device, such as the PCI address of a board that a virtual machine has.
func parseDeviceID(id string) (r reference, ok bool) {
	for _, form := range deviceIDs() {
		found := form.FindStringSubmatch(strings.ToLower(id))
		if found == nil {
			continue
		}
		for i, name := range form.SubexpNames() {
			switch name {
			case "uuid":
				r.uuid = found[i]
			case "minor":
				r.minor = found[i]
			case "instance":
				r.instance = found[i]
			}
		}
		return r, true
	}
	return reference{}, false
}

// isOurs reports whether a resource is one of NVIDIA's.
func isOurs(resource string) bool { return strings.HasPrefix(resource, "nvidia.com/") }

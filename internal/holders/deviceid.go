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
	// parent is the uuid of the board that a MIG device is on, in lower case, and profile
	// its size in the form of normalProfile; "" if unknown.
	parent, profile string
}

// isMIG reports whether r names a part of a board.
func (r *reference) isMIG() bool { return strings.HasPrefix(r.uuid, migPrefix) || r.instance != "" }

// The prefixes of the ids of NVIDIA's device plugins, in lower case.
const (
	gpuPrefix = "gpu-"
	migPrefix = "mig-"
	// vendorDomain begins the names of the plugins' resources.
	vendorDomain = "nvidia.com/"
	// migResource begins the names of resources of MIG devices that have the profile in
	// their name.
	migResource = vendorDomain + "mig-"
	// sharedSuffix ends the names of resources that several containers share, if the plugin
	// is set to rename them (renameByDefault).
	sharedSuffix = ".shared"
)

// deviceID matches the device ids of NVIDIA's plugin and of those of GKE and EKS, in lower case:
//
//	gpu-<uuid>                 a board
//	mig-<uuid>                 a MIG device
//	mig-gpu-<uuid>/<gi>/<ci>   a MIG device, by drivers before R470
//	nvidia0, nvidia0/gi1       a board and a MIG device by the number of the device file
//
// An id may end in the number of a share: ::3 or /vgpu2.
var deviceID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:mig-(gpu-[^/: ]+)/(\d+)/\d+|((?:gpu|mig)-[^/: ]+)|nvidia(\d{1,9})(?:/gi(\d+))?(?:/vgpu\d+)?)(?:::\d+)?$`)
})

// parseDeviceID reads a device id of a resource. ok is false for resources of other vendors, and
// for an id that names no device, such as the PCI address of a board that a virtual machine has.
func parseDeviceID(resource, id string) (r reference, ok bool) {
	found := deviceID().FindStringSubmatch(strings.ToLower(id))
	if found == nil || !isOurs(resource) {
		return reference{}, false
	}
	r = reference{uuid: found[1] + found[3], minor: found[4], instance: found[2] + found[5], profile: profileOf(resource)}
	if strings.HasPrefix(found[3], gpuPrefix) {
		r.profile = ""
	}
	return r, !strings.HasPrefix(r.uuid, migPrefix+gpuPrefix)
}

// isOurs reports whether a resource is one of NVIDIA's.
func isOurs(resource string) bool { return strings.HasPrefix(resource, vendorDomain) }

// profileOf returns the profile in the name of a resource: 1g.10gb in
// nvidia.com/mig-1g.10gb.shared; "" if there is none.
func profileOf(resource string) string {
	profile, ok := strings.CutPrefix(resource, migResource)
	if !ok {
		return ""
	}
	return normalProfile(strings.TrimSuffix(profile, sharedSuffix))
}

// normalProfile returns one spelling for all spellings of a profile: names of resources
// cannot contain the + of 1g.10gb+me.
func normalProfile(profile string) string {
	return strings.ReplaceAll(strings.ToLower(profile), "+", ".")
}

// isUUID reports whether id is a prefix and a possible UUID. The form of the UUID is not
// checked: an invalid one matches no device.
func isUUID(id, prefix string) bool {
	return len(id) > len(prefix) && strings.HasPrefix(id, prefix) && !strings.ContainsAny(id, "/: ")
}

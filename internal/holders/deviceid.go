package holders

import "strings"

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
	gpuPrefix   = "gpu-"
	migPrefix   = "mig-"
	minorPrefix = "nvidia"
	// vendorDomain begins the names of the plugins' resources.
	vendorDomain = "nvidia.com/"
	// migResource begins the names of resources of MIG devices that have the profile in
	// their name.
	migResource = vendorDomain + "mig-"
	// sharedSuffix ends the names of resources that several containers share, if the plugin
	// is set to rename them (renameByDefault).
	sharedSuffix = ".shared"
)

// parseDeviceID reads a device id of a resource, in every spelling of NVIDIA's plugin and of
// those of GKE and EKS:
//
//	GPU-<uuid>                 a board
//	MIG-<uuid>                 a MIG device
//	MIG-GPU-<uuid>/<gi>/<ci>   a MIG device, by drivers before R470
//	GPU-<uuid>::3, MIG-<uuid>::7       a share of one of these
//	nvidia0, nvidia0/gi1       a board and a MIG device by the number of the device file
//	nvidia0/vgpu1, nvidia0/gi1/vgpu2   a share of one of these
//
// ok is false for resources of other vendors, and for an id that names no device, such as the
// PCI address of a board that a virtual machine has.
func parseDeviceID(resource, id string) (r reference, ok bool) {
	if !isOurs(resource) {
		return reference{}, false
	}
	r.profile = profileOf(resource)
	id = strings.ToLower(id)
	if device, replica, shared := strings.Cut(id, "::"); shared {
		if !isNumber(replica) {
			return reference{}, false
		}
		id = device
	}
	switch {
	case strings.HasPrefix(id, migPrefix+gpuPrefix):
		board, rest, _ := strings.Cut(id[len(migPrefix):], "/")
		instance, compute, _ := strings.Cut(rest, "/")
		r.uuid, r.instance = board, instance
		return r, isUUID(board, gpuPrefix) && isNumber(instance) && isNumber(compute)
	case strings.HasPrefix(id, gpuPrefix):
		r.uuid, r.profile = id, ""
		return r, isUUID(id, gpuPrefix)
	case strings.HasPrefix(id, migPrefix):
		r.uuid = id
		return r, isUUID(id, migPrefix)
	}
	return r.byMinor(id)
}

// isOurs reports whether a resource is one of NVIDIA's.
func isOurs(resource string) bool { return strings.HasPrefix(resource, vendorDomain) }

// byMinor reads nvidia0, nvidia0/gi1, nvidia0/vgpu1 and nvidia0/gi1/vgpu1.
func (r reference) byMinor(id string) (reference, bool) {
	rest, ok := strings.CutPrefix(id, minorPrefix)
	r.minor, rest, _ = strings.Cut(rest, "/")
	if !ok || !isNumber(r.minor) {
		return reference{}, false
	}
	if instance, cut := strings.CutPrefix(rest, "gi"); cut {
		r.instance, rest, _ = strings.Cut(instance, "/")
		if !isNumber(r.instance) {
			return reference{}, false
		}
	}
	if share, cut := strings.CutPrefix(rest, "vgpu"); cut {
		return r, isNumber(share)
	}
	return r, rest == "" && !strings.HasSuffix(id, "/")
}

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

// isNumber reports whether text is a whole number, without a sign.
func isNumber(text string) bool {
	return text != "" && len(text) <= 9 && strings.Trim(text, "0123456789") == ""
}

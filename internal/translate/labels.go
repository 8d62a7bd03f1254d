package translate

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// role is what a label says about the row it is on.
type role uint8

const (
	roleGPU role = iota
	roleUUID
	roleHostname
	roleModel
	roleName
	rolePCIBusID
	roleDriver
	roleInstance
	roleProfile
	roleEntity   // a row of dmon, whose devices have no uuid
	roleNoDevice // a row of something inside or beside a GPU
	numRoles
)

// labelNames gives the role of each label, by its name in lower case: over the
// versions the same label was Hostname and hostname, UUID and uuid. Rows of links
// and, since 4.9, of GPUs spell some words out.
var labelNames = map[string]role{
	"gpu":                           roleGPU,
	"uuid":                          roleUUID,
	"gpu_uuid":                      roleUUID,
	"hostname":                      roleHostname,
	"modelname":                     roleModel,
	"model_name":                    roleModel,
	"device":                        roleName,
	"pci_bus_id":                    rolePCIBusID,
	"dcgm_fi_driver_version":        roleDriver,
	"dcgm_fi_system_driver_version": roleDriver,
	"gpu_i_id":                      roleInstance,
	"gpu_instance_entity":           roleInstance,
	"gpu_i_profile":                 roleProfile,
	"entity":                        roleEntity,
	"nvlink":                        roleNoDevice,
	"nvswitch":                      roleNoDevice,
	"cpu":                           roleNoDevice,
	"cpucore":                       roleNoDevice,
	"gpu_ci_id":                     roleNoDevice,
}

// systemDriverLabel is the driver's label as of DCGM 4.7.
const systemDriverLabel = "DCGM_FI_SYSTEM_DRIVER_VERSION"

// variant is all that the labels of a row say about its device. Rows of one
// device may differ in it, and rows that differ only in other labels, such as
// those of pods, share one.
type variant struct {
	canonical.Device
	systemDriver bool // the driver's label is systemDriverLabel
}

// noDevice stands for the variant of rows that are of no device.
const noDevice = -1

// resolve returns the variant of a label block. It is where a block is parsed,
// once, and the only place.
func (t *Translator) resolve(block string) int32 {
	t.labels = raw.ParseLabels(block, t.labels[:0])
	v, ok := t.describe(t.labels)
	if !ok {
		return noDevice
	}
	if id, known := t.variantID[v]; known {
		return id
	}
	v.Device = cloneDevice(v.Device)
	id := int32(len(t.variants))
	t.variants = append(t.variants, v)
	t.places = append(t.places, place{row: notHere})
	t.variantID[v] = id
	return id
}

// describe makes a variant of labels; ok is false if they are of no device. Of
// labels with the same role the first that is not blank counts: the exporter
// writes its own in front of those of pods.
func (t *Translator) describe(labels []raw.Label) (v variant, ok bool) {
	var values [numRoles]string
	for _, l := range labels {
		r, known := roleOf(l.Name)
		if !known || values[r] != "" || isBlank(l.Value) {
			continue
		}
		values[r] = l.Value
		v.systemDriver = v.systemDriver || strings.EqualFold(l.Name, systemDriverLabel)
	}
	if values[roleNoDevice] != "" || values[roleGPU] == "" || values[roleUUID] == "" && values[roleEntity] == "" {
		return variant{}, false
	}
	v.Device = canonical.Device{
		Hostname: values[roleHostname],
		GPU:      values[roleGPU],
		UUID:     values[roleUUID],
		Instance: values[roleInstance],
		Profile:  values[roleProfile],
		Model:    values[roleModel],
		Name:     values[roleName],
		PCIBusID: values[rolePCIBusID],
		Driver:   values[roleDriver],
	}
	if v.Instance == "" {
		v.Profile = ""
	}
	if t.nodeName != "" {
		v.Hostname = t.nodeName
	}
	return v, true
}

// roleOf looks a label name up, whatever its case.
func roleOf(name string) (role, bool) {
	const longest = len("dcgm_fi_system_driver_version")
	if len(name) > longest {
		return 0, false
	}
	var lower [longest]byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	r, ok := labelNames[string(lower[:len(name)])]
	return r, ok
}

// isBlank tells whether a label's value says nothing: empty, one of the vendor's
// blank strings (<<<NULL>>>, <<<NOT_FOUND>>>, <<<NOT_SUPPORTED>>>, <<<NOT_PERM>>>),
// or what dcgm-exporter puts in their place on some rows.
func isBlank(value string) bool {
	return value == "" || value == "SKIPPING DCGM VALUE" ||
		strings.HasPrefix(value, "<<<") && strings.Contains(value, ">>>")
}

// cloneDevice copies the strings of d, so that it does not keep alive the blocks
// they are parts of.
func cloneDevice(d canonical.Device) canonical.Device {
	for _, s := range []*string{&d.Hostname, &d.GPU, &d.UUID, &d.Instance, &d.Profile, &d.Model, &d.Name, &d.PCIBusID, &d.Driver} {
		*s = strings.Clone(*s)
	}
	return d
}

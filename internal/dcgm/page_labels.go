package dcgm

import (
	"strconv"
	"unicode/utf8"
)

// labels returns the label blocks of e, one for each job that holds it and one
// where there is none, each with the blank behind it.
func (p *Page) labels(e *entity) [][]byte {
	jobs := p.jobs.Of(e.board.Entity, e.instance())
	if len(jobs) == 0 {
		return [][]byte{append(p.appendEntity(nil, e), "} "...)}
	}
	var all [][]byte
	for _, job := range jobs {
		all = append(all, append(appendLabel(p.appendEntity(nil, e), ",hpc_job", job), "} "...))
	}
	return all
}

// appendEntity appends the labels that tell an entity, in the exporter's order,
// without the closing brace. The five in front are always there, as the exporter
// writes them.
func (p *Page) appendEntity(dst []byte, e *entity) []byte {
	b := e.board
	gpu := strconv.Itoa(b.Entity)
	dst = appendLabel(dst, "{gpu", gpu)
	dst = appendLabel(dst, ",UUID", b.UUID)
	dst = appendLabel(dst, ",pci_bus_id", b.PCIBusID)
	dst = appendLabel(dst, ",device", "nvidia"+gpu)
	dst = appendLabel(dst, ",modelName", b.Model)
	if e.cut != nil {
		dst = appendOptional(dst, ",GPU_I_PROFILE", e.cut.Profile)
		dst = appendLabel(dst, ",GPU_I_ID", strconv.Itoa(e.cut.ID))
	}
	dst = appendOptional(dst, ",hostname", p.hostname)
	return appendOptional(dst, ",DCGM_FI_DRIVER_VERSION", b.Driver)
}

// appendOptional appends a label unless it is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendLabel(dst, name, value)
}

// appendLabel appends name="value", escaped as the text format wants it. The
// exporter does not escape, and is not to be copied in that. Bytes that are no
// UTF-8, and NUL, would make Prometheus reject everything: they become U+FFFD.
func appendLabel(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), '=', '"')
	for _, r := range value {
		switch r {
		case 0:
			r = utf8.RuneError
		case '\n':
			dst, r = append(dst, '\\'), 'n'
		case '\\', '"':
			dst = append(dst, '\\')
		}
		dst = utf8.AppendRune(dst, r)
	}
	return append(dst, '"')
}

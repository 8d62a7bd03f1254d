package expose

import (
	"strings"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// appendLabel appends name="value" with the value escaped as the text format
// wants it. Bytes that are no UTF-8, and NUL, would make Prometheus reject the
// whole exposition: each becomes U+FFFD.
func appendLabel(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, '=', '"')
	for {
		n := plainPrefix(value)
		dst = append(dst, value[:n]...)
		if value = value[n:]; value == "" {
			return append(dst, '"')
		}
		r, size := utf8.DecodeRuneInString(value)
		switch r {
		case utf8.RuneError, 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case '\n':
			dst = append(dst, `\n`...)
		case '\\', '"':
			dst = append(dst, '\\', byte(r))
		default:
			dst = append(dst, value[:size]...)
		}
		value = value[size:]
	}
}

// plainPrefix is how many bytes s begins with that need no second look.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// appendDevice appends the labels that all series of d have, after an opening
// brace and without the closing one.
func appendDevice(dst []byte, d *canonical.Device) []byte {
	dst = appendLabel(append(dst, '{'), "hostname", d.Hostname)
	dst = appendLabel(append(dst, ','), "gpu", d.GPU)
	dst = appendLabel(append(dst, ','), "uuid", d.UUID)
	if d.IsInstance() {
		dst = appendLabel(append(dst, ','), "mig_instance", d.Instance)
		dst = appendLabel(append(dst, ','), "mig_profile", d.Profile)
	}
	return dst
}

// appendInfo appends the labels that gpu_info has beyond those, and the end of
// the label block.
func appendInfo(dst []byte, d *canonical.Device) []byte {
	dst = appendLabel(append(dst, ','), "model", d.Model)
	dst = appendLabel(append(dst, ','), "device", d.Name)
	dst = appendLabel(append(dst, ','), "pci_bus_id", d.PCIBusID)
	dst = appendLabel(append(dst, ','), "driver_version", d.Driver)
	return append(dst, "} "...)
}

// appendAllocation appends the labels that all series of a have beyond those of
// its device, without the closing brace.
func appendAllocation(dst []byte, a *canonical.Allocation) []byte {
	dst = appendLabel(append(dst, ','), "workload_namespace", a.Namespace)
	dst = appendLabel(append(dst, ','), "workload_pod", a.Pod)
	dst = appendLabel(append(dst, ','), "workload_container", a.Container)
	dst = appendLabel(append(dst, ','), "workload_kind", a.Kind)
	dst = appendLabel(append(dst, ','), "workload_name", a.Name)
	return appendLabel(append(dst, ','), "hpc_job", a.Job)
}

// appendSource appends the labels that all series of a source have, after an
// opening brace and without the closing one.
func appendSource(dst []byte, s *canonical.Source) []byte {
	dst = appendLabel(append(dst, '{'), "source", s.Name)
	return appendLabel(append(dst, ','), "backend", s.Backend)
}

// appendSourceInfo appends the labels that source_info has beyond those, and the
// end of the label block.
func appendSourceInfo(dst []byte, s *canonical.Source) []byte {
	dst = appendLabel(append(dst, ','), "aggregation", s.Aggregation)
	dst = appendLabel(append(dst, ','), "version", s.Version)
	return append(dst, "} "...)
}

// tail returns what follows the common labels of a series: own labels in
// exposition syntax, the closing brace and the space before the value.
func tail(labels ...string) string {
	if len(labels) == 0 || labels[0] == "" {
		return "} "
	}
	return "," + strings.Join(labels, ",") + "} "
}

// labelNames returns the names in labels, which are in exposition syntax and
// hold no comma in their values.
func labelNames(labels string) string {
	if labels == "" {
		return ""
	}
	var names []string
	for label := range strings.SplitSeq(labels, ",") {
		name, _, _ := strings.Cut(label, "=")
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

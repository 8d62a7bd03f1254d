//go:build cgo && linux

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// textCall is the call for a Text of dcgm.
type textCall struct {
	call string
	ask  func(l *library, d nvml.Device) (string, nvml.Return) // nil if NVML does not provide it
}

// textCalls has the indices of dcgm.Texts.
var textCalls = [dcgm.NumTexts]textCall{
	{"nvmlSystemGetDriverVersion", func(l *library, _ nvml.Device) (string, nvml.Return) { return l.driver, nvml.SUCCESS }},
	{"nvmlSystemGetNVMLVersion", func(l *library, _ nvml.Device) (string, nvml.Return) { return l.version, nvml.SUCCESS }},
	{"nvmlDeviceGetSerial", func(_ *library, d nvml.Device) (string, nvml.Return) { return d.GetSerial() }},
	{"nvmlDeviceGetInforomVersion", inforom(nvml.INFOROM_OEM)},
	{"nvmlDeviceGetInforomVersion", inforom(nvml.INFOROM_ECC)},
	{"nvmlDeviceGetInforomVersion", inforom(nvml.INFOROM_POWER)},
	{"nvmlDeviceGetInforomImageVersion", func(_ *library, d nvml.Device) (string, nvml.Return) { return d.GetInforomImageVersion() }},
	{"nvmlDeviceGetVbiosVersion", func(_ *library, d nvml.Device) (string, nvml.Return) { return d.GetVbiosVersion() }},
}

func inforom(object nvml.InforomObject) func(*library, nvml.Device) (string, nvml.Return) {
	return func(_ *library, d nvml.Device) (string, nvml.Return) { return d.GetInforomVersion(object) }
}

// askTexts fills in the requested Texts of a board.
func (l *library) askTexts(f *foundBoard, texts []int, calls func(string)) {
	for _, t := range texts {
		c := &textCalls[t]
		if !l.has(c.call) {
			continue
		}
		calls(c.call)
		f.Texts[t] = textOf(c.ask(l, f.handle))
	}
}

// Gives reports whether NVML provides the DCGM field with that id for some boards.
func Gives(id int) bool {
	for t := range dcgm.Texts {
		if dcgm.Texts[t].ID == id {
			return textCalls[t].ask != nil
		}
	}
	at := slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.ID == id })
	if at < 0 {
		return false
	}
	column := dcgm.Fields[at].Column
	return slices.ContainsFunc(boardReadings, func(r getter) bool { return slices.Contains(r.columns, column) }) ||
		slices.ContainsFunc(steadyFields, func(f field) bool { return f.column == column }) ||
		slices.ContainsFunc(linkFields, func(f field) bool { return f.column == column }) ||
		slices.ContainsFunc(gpmMetrics, func(m gpmMetric) bool { return m.column == column }) ||
		slices.Contains([]string{"XIDER", "NBWLT", "FMHSUM", "FMFRC", dcgm.CliqueColumn}, column)
}

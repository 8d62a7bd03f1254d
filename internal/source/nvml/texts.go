//go:build cgo && linux

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
)

// textCall is how a Text of dcgm is asked.
type textCall struct {
	call string
	ask  func(l *library, d nvml.Device) (string, nvml.Return) // nil if NVML is not asked
}

// textCalls are indexed as dcgm.Texts is.
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

// askTexts fills in those of the Texts of a board that are asked for.
func (l *library) askTexts(f *found, texts []int, calls func(string)) {
	for _, t := range texts {
		c := &textCalls[t]
		if !l.has(c.call) {
			continue
		}
		calls(c.call)
		f.Texts[t] = versionOf(c.ask(l, f.handle))
	}
}

package e2e

import (
	"bytes"
	"strings"
	"testing"
	"text/template"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// exporterTemplate writes an exposition like dcgm-exporter 4.8: text/template over a map of
// families, each a list of samples whose labels are partly fields and partly a map.
var exporterTemplate = template.Must(template.New("metrics").Parse(
	`{{- range $family, $samples := . -}}
# HELP {{ $family.Name }} {{ $family.Help }}
# TYPE {{ $family.Name }} {{ $family.Type }}
{{- range $sample := $samples }}
{{ $family.Name }}{gpu="{{ $sample.GPU }}",UUID="{{ $sample.UUID }}",pci_bus_id="{{ $sample.Bus }}",device="{{ $sample.Device }}",modelName="{{ $sample.Model }}"
{{- if $sample.Profile }},GPU_I_PROFILE="{{ $sample.Profile }}",GPU_I_ID="{{ $sample.Instance }}"{{ end }}
{{- if $sample.Hostname }},Hostname="{{ $sample.Hostname }}"{{ end }}
{{- range $name, $value := $sample.Labels -}}
,{{ $name }}="{{ $value }}"
{{- end -}}
} {{ $sample.Value -}}
{{ end }}
{{ end }}`))

type exporterFamily struct{ Name, Help, Type string }

type exporterSample struct {
	GPU, UUID, Bus, Device, Model, Profile, Instance, Hostname string
	Labels                                                     map[string]string
	Value                                                      string
}

// exporterRendering returns a function that writes body into out like an exporter.
func exporterRendering(t testing.TB, body []byte, out *bytes.Buffer) func() {
	t.Helper()
	all := map[exporterFamily][]exporterSample{}
	var family exporterFamily
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			family.Name, family.Help, _ = strings.Cut(help, " ")
			continue
		}
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			_, family.Type, _ = strings.Cut(kind, " ")
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		s := exporterSample{Labels: map[string]string{}, Value: line[at+1:]}
		fields := map[string]*string{
			"gpu": &s.GPU, "UUID": &s.UUID, "pci_bus_id": &s.Bus, "device": &s.Device, "modelName": &s.Model,
			"GPU_I_PROFILE": &s.Profile, "GPU_I_ID": &s.Instance, "Hostname": &s.Hostname,
		}
		for _, l := range exposition.ParseLabels(line[strings.IndexByte(line, '{'):at], nil) {
			if field, ok := fields[l.Name]; ok {
				*field = l.Value
				continue
			}
			s.Labels[l.Name] = l.Value
		}
		all[family] = append(all[family], s)
	}
	return func() {
		out.Reset()
		if err := exporterTemplate.Execute(out, all); err != nil {
			t.Fatal(err)
		}
	}
}

package settings

import (
	_ "embed"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// exporterTable has the settings of dcgm-exporter. If the program finds any of the first telling ones, it takes the place of
// the exporter, such as in the gpu-operator's DaemonSet: they are values of ours then. Those in our own words take precedence.
//
//go:embed exporter.tsv
var exporterTable string

const telling = 7

// exporterCounters is the exporter's default.
const exporterCounters = "/etc/dcgm-exporter/default-counters.csv"

type exporterSetting struct {
	variable       string
	flags, nothing []string
	isSwitch       bool
	ours, value    string
}

var exporterSettings = sync.OnceValue(func() (all []exporterSetting) {
	for line := range strings.Lines(exporterTable) {
		if c := strings.Split(strings.TrimSpace(line), "\t"); len(c) == 6 && line[0] != '#' {
			all = append(all, exporterSetting{c[0], strings.Fields(c[1]), strings.Fields(c[5]), c[2] == "switch", c[3], c[4]})
		}
	}
	return all
})

// Slot is the place of dcgm-exporter, taken over.
type Slot struct {
	NotHonoured []string // the settings of the exporter that have no effect here
}

// Slot returns the place of dcgm-exporter that the program takes, nil for none.
func (o *Options) Slot() *Slot { return o.Given.Flag("backend").slot }

// exporterFlags takes the flags of dcgm-exporter out of a command line, and returns the values of its settings by
// variable, those of the environment too. It returns args and nil unless they tell that we take its place.
func exporterFlags(args []string) (rest []string, values map[string]string) {
	values, tells := map[string]string{}, false
	for i := 0; i < len(args); i++ {
		dashes := len(args[i]) - len(strings.TrimLeft(args[i], "-"))
		name, value, has := strings.Cut(args[i][dashes:], "=")
		at := slices.IndexFunc(exporterSettings(), func(s exporterSetting) bool { return slices.Contains(s.flags, name) })
		if at < 0 || dashes < 1 || dashes > 2 {
			rest = append(rest, args[i])
			continue
		}
		switch s := &exporterSettings()[at]; {
		case has:
		case s.isSwitch:
			value = "true"
		case i+1 < len(args):
			i++
			value = args[i]
		}
		values[exporterSettings()[at].variable], tells = value, tells || at < telling
	}
	for i, s := range exporterSettings() {
		if _, typed := values[s.variable]; !typed && os.Getenv(s.variable) != "" {
			values[s.variable], tells = os.Getenv(s.variable), tells || i < telling
		}
		if on, err := strconv.ParseBool(values[s.variable]); err == nil && s.isSwitch {
			values[s.variable] = strconv.FormatBool(on)
		}
	}
	if !tells {
		return args, nil
	}
	return rest, values
}

// takeExportersPlace sets the flags that are not set in our words from the values of dcgm-exporter's settings, unless
// they name another source than this machine; it reports whether it did. The host engine of another process is read with
// dcgmi, if that is there.
func (g Given) takeExportersPlace(values map[string]string) bool {
	backend := g.Flag("backend")
	b, err := parseBackend(strings.Join(backend.Texts, ""))
	if values == nil || g.Flag("source").Texts != nil || g.Flag("replay").Texts != nil || backend.Texts != nil && (err != nil || !b.Selects) {
		return false
	}
	slot := &Slot{}
	if backend.slot = slot; backend.Texts == nil {
		backend.Texts = []string{"nvml"}
		if values["DCGM_REMOTE_HOSTENGINE_INFO"] != "" && dcgm.Installed() {
			backend.Texts = []string{"dcgm"}
		}
	}
	for _, s := range exporterSettings() {
		value, given := values[s.variable]
		if !given || slices.Contains(s.nothing, "*") || slices.Contains(s.nothing, value) {
			continue
		}
		text := strings.ReplaceAll(s.value, "$", value)
		// Instances have other ids here.
		if boards, is := strings.CutPrefix(value, "g:"); s.ours == "gpus" && is && strings.Trim(boards, "0123456789,-") == "" {
			text = boards
		} else if _, err := strconv.ParseBool(value); s.ours == "-" || s.ours == "gpus" || value == "" || s.isSwitch && err != nil {
			slot.NotHonoured = append(slot.NotHonoured, s.variable+"="+value)
			continue
		}
		switch f := g.Flag(s.ours); {
		case s.ours == "dcgm.host" && backend.Texts[0] != "dcgm":
			slot.NotHonoured = append(slot.NotHonoured, s.variable+"="+value+" (only --backend=dcgm asks it, with dcgmi)")
		case s.ours == "kube.pod-resources" && value != "true": // the socket, for --kubernetes only
			if f.variable != "" {
				f.Texts = []string{value}
			}
		case f.Texts == nil:
			f.Texts, f.variable = []string{text}, s.variable
		}
	}
	for _, entry := range os.Environ() { // of other versions of the exporter
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "DCGM_EXPORTER_") && !isOfOthers(name, value) && !strings.Contains(exporterTable, "\n"+name+"\t") {
			slot.NotHonoured = append(slot.NotHonoured, name)
		}
	}
	if f := g.Flag("web.listen-address"); f.Texts == nil {
		f.Texts = []string{":9400"}
	}
	if _, err := os.Stat(exporterCounters); err == nil && g.Flag("counters").Texts == nil {
		g.Flag("counters").Texts = []string{exporterCounters}
	}
	return true
}

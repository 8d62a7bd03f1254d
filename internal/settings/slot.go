package settings

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// The program takes the place of dcgm-exporter, such as in the gpu-operator's DaemonSet, if it finds that program's
// settings: they then are values of ours. Those in our own words take precedence.

// exporterSetting is a setting of dcgm-exporter.
type exporterSetting struct {
	variable string
	flags    string // the short one and the long one, without dashes
	isSwitch bool   // its flag needs no value
	flag     string // ours that it sets, "" for none
	// as returns the value of ours, "" for one that ours lacks; nil is the same text.
	as func(value string) string
	// nothing are the values, separated by spaces, that ask for nothing that we do not do anyway; * is all.
	nothing string
}

// exporterSettings are those of dcgm-exporter 4.8.2. Any of the first rows tells that we take its place.
var exporterSettings = []exporterSetting{
	{variable: "DCGM_EXPORTER_LISTEN", flags: "a address", flag: "web.listen-address"},
	{variable: "DCGM_EXPORTER_COLLECTORS", flags: "f collectors", flag: "counters"},
	{variable: "DCGM_EXPORTER_KUBERNETES", flags: "k kubernetes", isSwitch: true, flag: "kube.pod-resources"},
	{variable: "DCGM_REMOTE_HOSTENGINE_INFO", flags: "r remote-hostengine-info", flag: "dcgm.host"},
	{variable: "DCGM_EXPORTER_INTERVAL", flags: "c collect-interval", flag: "poll", as: func(ms string) string { return ms + "ms" }},
	{variable: "DCGM_EXPORTER_DEVICES_STR", flags: "d devices", flag: "gpus", as: indexesOf, nothing: "f g"},
	{variable: "DCGM_EXPORTER_CONFIGMAP_DATA", flags: "m configmap-data", nothing: "none"},

	{variable: podResourcesVariable, flags: "pod-resources-kubelet-socket", nothing: DefaultPodResources},
	{variable: "DCGM_HPC_JOB_MAPPING_DIR", flag: "hpc-job-mapping-dir"},
	{variable: "DCGM_EXPORTER_WEB_CONFIG_FILE", flags: "web-config-file", flag: "web.config.file"},
	{variable: "DCGM_EXPORTER_SYSTEMD_SOCKET", flags: "web-systemd-socket", isSwitch: true, flag: "web.systemd-socket"},
	{variable: "DCGM_EXPORTER_ENABLE_PPROF", flags: "enable-pprof", isSwitch: true, flag: "web.enable-pprof"},
	{variable: "DCGM_EXPORTER_DEBUG", flags: "debug", isSwitch: true, flag: "log.level", as: func(string) string { return "debug" }, nothing: "false"},
	{variable: "DCGM_EXPORTER_LOG_FORMAT", flags: "log-format", flag: "log.format", nothing: "text"},
	{variable: "DCGM_EXPORTER_USE_OLD_NAMESPACE", flags: "o use-old-namespace", isSwitch: true, flag: "compat", as: func(string) string { return "1" }, nothing: "false"},
	{variable: "DCGM_EXPORTER_NO_HOSTNAME", flags: "n no-hostname", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_CPU_DEVICES_STR", flags: "p cpu-devices", nothing: "f"},
	{variable: "DCGM_EXPORTER_OTHER_DEVICES_STR", flags: "s switch-devices", nothing: "f"},
	{variable: "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", flags: "x xid-count-window-size", nothing: "300000"},
	{variable: "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE", flags: "clock-events-count-window-size", nothing: "300000"},
	{variable: "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", flags: "kubernetes-gpu-id-type", nothing: "*"},
	{variable: "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", flags: "kubernetes-enable-pod-labels", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", flags: "kubernetes-enable-pod-uid", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", flags: "kubernetes-pod-label-allowlist-regex"},
	{variable: "KUBERNETES_VIRTUAL_GPUS", flags: "kubernetes-virtual-gpus", isSwitch: true, nothing: "false"},
	{variable: "KUBERNETES_ENABLE_DRA", flags: "kubernetes-enable-dra", isSwitch: true, nothing: "false"},
	{variable: "NVIDIA_RESOURCE_NAMES", flags: "nvidia-resource-names", nothing: "nvidia.com/gpu"},
	{variable: "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", flags: "rbmn replace-blanks-in-model-name", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_USE_FAKE_GPUS", flags: "fake-gpus", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_ENABLE_DCGM_LOG", flags: "enable-dcgm-log", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_DCGM_LOG_LEVEL", flags: "dcgm-log-level", nothing: "*"},
	{variable: "DCGM_EXPORTER_DUMP_ENABLED", flags: "dump-enabled", isSwitch: true, nothing: "false"},
	{variable: "DCGM_EXPORTER_DUMP_DIRECTORY", flags: "dump-directory", nothing: "*"},
	{variable: "DCGM_EXPORTER_DUMP_RETENTION", flags: "dump-retention", nothing: "*"},
	{variable: "DCGM_EXPORTER_DUMP_COMPRESSION", flags: "dump-compression", isSwitch: true, nothing: "*"},
	{variable: "DISABLE_STARTUP_VALIDATE", flags: "disable-startup-validate", isSwitch: true, nothing: "*"},
	{variable: "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH", flags: "enable-gpu-bind-unbind-watch", isSwitch: true, nothing: "*"},
	{variable: "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL", flags: "gpu-bind-unbind-poll-interval", nothing: "*"},
}

const (
	telling = 7 // the rows of exporterSettings, from the first on, any of which tells

	podResourcesVariable = "DCGM_POD_RESOURCES_KUBELET_SOCKET"

	exporterListen   = ":9400"
	exporterCounters = "/etc/dcgm-exporter/default-counters.csv"
)

// Slot is the place of dcgm-exporter, taken over.
type Slot struct {
	// Engine is the host engine that the exporter was to read, "" for its own.
	Engine string
	// NotHonoured are the settings of the exporter that have no effect here.
	NotHonoured []string
}

// Slot returns the place of dcgm-exporter that the program takes, nil for none.
func (o *Options) Slot() *Slot { return o.Given.Flag("backend").slot }

// indexesOf returns the boards of the exporter's g:0,2-3, "" for anything else, such as instances.
func indexesOf(devices string) string {
	list, is := strings.CutPrefix(devices, "g:")
	if !is || strings.Trim(list, "0123456789,-") != "" {
		return ""
	}
	return list
}

// exporterFlags takes the flags of dcgm-exporter out of a command line, with their values by variable; tells reports
// whether they tell that we take its place.
func exporterFlags(args []string) (rest []string, values map[string]string, tells bool) {
	values = map[string]string{}
	for i := 0; i < len(args); i++ {
		dashes := len(args[i]) - len(strings.TrimLeft(args[i], "-"))
		name, value, has := strings.Cut(args[i][dashes:], "=")
		at := slices.IndexFunc(exporterSettings, func(s exporterSetting) bool { return slices.Contains(strings.Fields(s.flags), name) })
		if at < 0 || dashes < 1 || dashes > 2 {
			rest = append(rest, args[i])
			continue
		}
		s := &exporterSettings[at]
		switch {
		case has:
		case s.isSwitch:
			value = "true"
		case i+1 < len(args):
			i++
			value = args[i]
		}
		values[s.variable], tells = value, tells || at < telling
	}
	return rest, values, tells
}

// exporterVariables completes the values of flags with those of the environment.
func exporterVariables(values map[string]string) (tells bool) {
	for i := range exporterSettings {
		s := &exporterSettings[i]
		if _, typed := values[s.variable]; !typed && os.Getenv(s.variable) != "" {
			values[s.variable], tells = os.Getenv(s.variable), tells || i < telling
		}
		if on, err := strconv.ParseBool(values[s.variable]); err == nil && s.isSwitch {
			values[s.variable] = strconv.FormatBool(on)
		}
	}
	return tells
}

// takeExportersPlace sets the flags that are not set in our words from the values of dcgm-exporter's settings, unless
// they name another source than this machine. The host engine of another process is read with dcgmi, if that is there.
func (g Given) takeExportersPlace(values map[string]string) {
	backend := g.Flag("backend")
	b, err := parseBackend(strings.Join(backend.Texts, ""))
	if g.Flag("source").Texts != nil || g.Flag("replay").Texts != nil || backend.Texts != nil && (err != nil || !b.Selects) {
		return
	}
	slot := &Slot{Engine: values["DCGM_REMOTE_HOSTENGINE_INFO"]}
	backend.slot = slot
	if backend.Texts == nil {
		backend.Texts = []string{"nvml"}
		if slot.Engine != "" && dcgm.Installed() {
			backend.Texts = []string{"dcgm"}
		}
	}
	for i := range exporterSettings {
		s := &exporterSettings[i]
		value, given := values[s.variable]
		if !given || s.nothing == "*" || slices.Contains(strings.Fields(s.nothing), value) {
			continue
		}
		text := value
		if s.as != nil {
			text = s.as(value)
		}
		switch {
		case s.variable == podResourcesVariable:
			if f := g.Flag("kube.pod-resources"); f.variable != "" && f.Texts[0] == "true" {
				f.Texts = []string{value}
			}
		case s.flag == "dcgm.host" && backend.Texts[0] != "dcgm": // whoever opens NVML says so
		case s.flag == "" || text == "":
			slot.NotHonoured = append(slot.NotHonoured, s.variable+"="+value)
		case g.Flag(s.flag).Texts == nil:
			g.Flag(s.flag).Texts, g.Flag(s.flag).variable = []string{text}, s.variable
		}
	}
	for _, entry := range os.Environ() { // of other versions of the exporter
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "DCGM_EXPORTER_") && !isOfOthers(name, value) &&
			!slices.ContainsFunc(exporterSettings, func(s exporterSetting) bool { return s.variable == name }) {
			slot.NotHonoured = append(slot.NotHonoured, name)
		}
	}
	if f := g.Flag("web.listen-address"); f.Texts == nil {
		f.Texts = []string{exporterListen}
	}
	if _, err := os.Stat(exporterCounters); err == nil && g.Flag("counters").Texts == nil {
		g.Flag("counters").Texts = []string{exporterCounters}
	}
}

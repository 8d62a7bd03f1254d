package settings

import (
	"fmt"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// setting is one row of the table of all settings. Flags, environment variables, help,
// reference, precedence, refusals and reloads follow from it.
type setting struct {
	Flag     string // its name, without --; "" if only the config file can set it
	Key      string // the path in the config file; "" for none
	group    group
	help     string
	bare     string // the value of a flag that is given without one; "" requires a value
	standard string // the default as a value of the flag; Default has those of keys
	// placeholder is the name of the value in the help; "" shows the default instead.
	placeholder string
	// at returns a pointer to the value. Its type decides how the flag is parsed,
	// unless parse does. check returns an error if a parsed value is refused.
	at    func(*Options) any
	parse func(o *Options, text string) error
	check func(*Options) error
	// fields are the values of a key with a fixed set of keys below it. For other keys whose value is
	// not one value or a list of words, read reads it, and show returns it as YAML writes it, nil for
	// nothing. Names of files are relative to a directory.
	fields func(*Options) []named
	read   func(o *Options, value entry)
	show   func(o *Options, directory string) any
	file   bool // the value names a file, in the config file relative to its directory

	Modes      mode   // that it applies to
	backends   string // the names of the backends that it applies to; "" means all
	everywhere mode   // the modes in which it applies to all backends
	remedy     string // if it does not apply to the backend or mode; with "" it is ignored in other modes
	needs      string // flags at least one of which it requires, except in modeHealth
	perSource  bool   // the config file must not name several sources, as any of them could be meant
	restart    bool   // only a restart changes it
}

// mode is what the program does with readings. Modes can form a set.
type mode uint8

const (
	ModeServe  mode = 1 << iota
	modeOnce        // --once
	ModeExport      // --export
	modeTUI         // --tui, reading by itself
	modeAttach      // --tui of another proxy
	modeHealth      // check health
	modeReport      // report

	modesReading = ModeServe | modeOnce | ModeExport | modeTUI | modeHealth
	modesShowing = modeOnce | ModeExport | modeTUI | modeAttach | modeHealth
)

// Options are the settings in force.
type Options struct {
	Config // the settings that the config file can also set
	Reading
	Showing
	Asking
	Serving

	Given      Given // the given flags
	ConfigFile string
	ConfigShow bool       // --config.show
	FlagSource Source     // the source that flags describe
	replayFile string     // --replay
	Upstreams  []Upstream // empty only with --kube.discover
}

// Reading says how sources are read.
type Reading struct {
	MinInterval, Timeout Duration
	Record               string // file to record to; "" for none

	GPUs, JobMappingDir, JobInfoDir string
	ShowAll, Processes              bool
	CommandLines                    bool // of processes, rather than their names
}

// Showing is for the modes that show readings.
type Showing struct {
	Once, JSON, Wide, TUI bool
	Columns               []export.Column // of --export; nil without it
	ExportTimeout         Duration
	TUIURLs               []string
	TUIHTTP               string // file; "" for none
	TUIFocus              string // GPU to begin with; "" for none
}

// Asking is for check health, other checks of a proxy, and report.
type Asking struct {
	Health       bool // check health
	CheckURLs    []string
	TrustedUIDs  []string
	CheckTimeout Duration
	ForNPD       string // the level that node-problem-detector treats as a problem: crit, warn or "" for none

	PrometheusURL string // of report; "" asks proxies
	Comment       bool
}

// Serving is for the server.
type Serving struct {
	Passthrough     expose.Passthrough
	Listen          []string
	SystemdSocket   bool
	WebConfig       string
	Lifecycle       bool
	Hosts           []string // names of the proxy
	Pprof           bool
	ExposeProcesses bool // to other machines too
	Log             promslog.Config
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	o := &Options{Config: Default()}
	o.Log = promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat()}
	for i := range table {
		if s := &table[i]; s.standard != "" {
			if err := s.set(o, s.standard); err != nil {
				panic(fmt.Sprintf("the default of --%s: %v", s.Flag, err)) // a test parses all of them
			}
		}
	}
	return o
}

// Mode returns the mode of the program. For --tui it is modeTUI, even if the dashboard attaches to
// a proxy later.
func (o *Options) Mode() mode {
	switch {
	case o.Health:
		return modeHealth
	case o.Once:
		return modeOnce
	case o.Columns != nil:
		return ModeExport
	case o.TUI:
		return modeTUI
	}
	return ModeServe
}

// Presents reports whether readings are written to stdout rather than served or watched.
func (o *Options) Presents() bool { return o.Mode()&(modeOnce|ModeExport) != 0 }

// shows reports whether readings are shown or recorded, so that each one counts, rather than
// scraped at intervals.
func (o *Options) shows() bool { return o.Mode() != ModeServe || o.Record != "" }

// WebFlags returns the settings of the web server in the toolkit's form.
func (o *Options) WebFlags() *web.FlagConfig {
	return &web.FlagConfig{WebListenAddresses: &o.Listen, WebSystemdSocket: &o.SystemdSocket, WebConfigFile: &o.WebConfig}
}

// group is a heading of --help.
type group uint8

const (
	groupReading group = iota
	groupShowing
	groupHealth
	groupComputing
	groupHolders
	groupServing
	groupRest
)

// groupTitles are indexed by group.
var groupTitles = [...]string{
	"Reading", "Showing instead of serving", "Asking proxies (kpulse-proxy check health, kpulse-proxy report)", "Computing", "Who holds the GPUs", "Serving",
	"Logging and the rest",
}

// DefaultKernelLog is Linux's device for its log, and DefaultPodResources the kubelet's socket.
const (
	DefaultKernelLog    = "/dev/kmsg"
	DefaultPodResources = holders.PodResourcesSocket
)

// Remedies for flags that do not apply.
const (
	remedyLocal = "it is for --backend=dcgm and nvml, and for --once, --export and --tui; other backends serve what their source serves"
	remedyKube  = "only the server asks Kubernetes, not --once, --export or --tui; leave it out"
	remedyCheck = "it is for kpulse-proxy check health"
	remedyAsk   = "it is for kpulse-proxy check health and report"

	remedyReport = "it is for kpulse-proxy report"
)

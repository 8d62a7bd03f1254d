package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// Defaults and limits of the flags.
const (
	defaultListen   = ":9401"
	defaultUpstream = "http://localhost:9400/metrics"
	maxInterval     = time.Minute
	maxExpected     = 1024 // GPUs; no node has as many
)

// errAnswered means that --help or --version has said all there is to say.
var errAnswered = errors.New("answered")

// options is the command line after validation, and after configure the config
// file too.
type options struct {
	args       []string // that they were read from
	configFile string   // "" is none
	origin     func(flag string) origin

	feed          // what to read; not used where there are several
	feeds  []feed // where the config file names several
	named  bool   // the config file names them, or the one
	record string // file to record to, "" for none

	gpus, jobMappingDir string
	showAll, processes  bool
	commandLines        bool // of processes, rather than their names

	minInterval time.Duration
	timeout     time.Duration
	maxBody     int64
	once, json  bool
	columns     []export.Column // of --export, nil without it

	tui     bool
	tuiURLs []string
	tuiHTTP string // file, "" for none
	// notice says what the user of the dashboard may not expect of where its numbers
	// come from, "" if there is nothing.
	notice string
	// controls drive what the replay backend plays; nil is nobody.
	controls *replay.Controls

	judge       compute.Options
	rows        []translate.Row // additions to the dialect
	passthrough expose.Passthrough
	seriesLimit int

	ruleFiles   []string // names and globs
	ruleWindow  time.Duration
	ruleSamples int

	web         *web.FlagConfig
	lifecycle   bool
	maxRequests int
	pprof       bool
	// exposeProcesses shows the list of processes to other machines too.
	exposeProcesses bool
	log             *promslog.Config
}

// words are flag values that need more than kingpin to be understood.
type words struct {
	backend, source, replay, poll, minInterval, timeout, passthrough, preset, weights, missing, maxBody, nodeName, export, ruleWindow *string
}

// parse reads the command line, the environment and the config file. Help and version
// go to stdout and give errAnswered. What is wrong in the file is a *fileError.
func parse(args []string, stdout io.Writer) (*options, error) {
	app := kingpin.New("kpulse-proxy", about)
	answered := false
	app.Terminate(func(int) { answered = true })
	app.UsageWriter(stdout).Writer(stdout).ErrorWriter(stdout)
	app.UsageTemplate(helpTemplate).UsageFuncs(helpFuncs)
	app.HelpFlag.Short('h').Help("Show this help.")
	app.Version(version.Print("kpulse-proxy"))

	opts := &options{args: args, log: &promslog.Config{}}
	w := register(app, opts, config.Default())
	nameEnvironment(app)
	opts.origin = watch(app)
	args = bareExport(args)
	_, err := app.Parse(args)
	switch {
	case answered:
		return nil, errAnswered
	case err != nil:
		return nil, suggest(app, args, err)
	}
	if err := w.into(opts); err != nil {
		return nil, err
	}
	if err := opts.configure(); err != nil {
		return nil, &fileError{err}
	}
	return opts, opts.fit(*w.poll)
}

// fileError is why the config file cannot be taken.
type fileError struct{ error }

func (e *fileError) Error() string { return "--config.file: " + e.error.Error() }

func (e *fileError) Unwrap() error { return e.error }

// register declares every flag. What the config file can say too has its defaults.
func register(app *kingpin.Application, opts *options, defaults config.Config) *words {
	opts.judge = defaults.Judge
	w := &words{
		backend: app.Flag("backend", "Where readings come from: prometheus (a dcgm-exporter), dcgm (dcgmi dmon, which we run), nvml (the driver, without DCGM), or replay (a capture; without --source an embedded demo that needs no GPU).").
			Default("prometheus").PlaceHolder("prometheus|dcgm|nvml|replay").String(),
		source: app.Flag("source", "What to read. prometheus: the exporter's URL, or a file with a saved exposition (default "+defaultUpstream+"). replay: a recording, or a file with expositions, dcgmi dmon output or CSV of --export.").
			PlaceHolder("URL|FILE").String(),
		poll: app.Flag("poll", "prometheus: read the exporter by ourselves when nobody scraped for this long, as with --export; at least 1s, 0 = only when scraped, and not ready before that (default 15s). dcgm, nvml: time between two samples; at least 100ms (default 100ms and 1s). replay: time between two ticks; at least 100ms (default 1s, and of a recording its own). A duration, or bare seconds.").
			PlaceHolder("DURATION").String(),
		minInterval: app.Flag("source.min-interval", "Scrapes closer together than this share one reading of the exporter.").
			Default("1s").PlaceHolder("1s").String(),
		timeout: app.Flag("source.timeout", "Longest wait for the exporter where the scraper sends no timeout of its own.").
			Default("10s").PlaceHolder("10s").String(),
		maxBody: app.Flag("source.max-body", "Largest body taken from the exporter, also after gunzip.").
			Default(defaults.Limits.MaxBody.String()).PlaceHolder("64MiB").String(),
		nodeName: app.Flag("node-name", "Label hostname of our series (default: $NODE_NAME, else what the exporter says, else the host of its URL).").
			PlaceHolder("NAME").String(),
		passthrough: app.Flag("passthrough", "Which of the exporter's lines to serve: valid (all that Prometheus can parse), verbatim (every byte; one bad line then fails the whole scrape), off (only ours, beside a direct scrape of the exporter).").
			Default("valid").PlaceHolder("valid|verbatim|off").String(),
		preset: app.Flag("preset", "Weights of real utilization: ai, hpc or mem.").
			Default(defaults.Judge.Preset).PlaceHolder("ai|hpc|mem").String(),
		weights: app.Flag("weights", "Weights of our own in place of a preset: SM, tensor, DRAM and engine activity; normalised to sum 1.").
			PlaceHolder("SM,TENSOR,DRAM,ENGINE").String(),
		missing: app.Flag("missing-inputs", "What an input that the exporter does not give does to real utilization: renormalize (divide by the weight that is present) or zero (count it as 0).").
			Default(defaults.Judge.Missing.String()).PlaceHolder("renormalize|zero").String(),
	}
	w.replay = app.Flag("replay", "Play this file: short for --backend=replay --source=FILE. With --tui, keys pause it, step and change the speed.").
		PlaceHolder("FILE").String()
	registerLocal(app, opts)
	app.Flag("record", "Write all readings to this file, for --backend=replay to play; it is rotated at 64 MiB, and FILE.1 to FILE.4 are kept.").
		PlaceHolder("FILE").StringVar(&opts.record)
	registerPresenting(app, opts, w)
	registerTUI(app, opts)
	app.Flag("min-coverage", "Share of the weights that must have been read for a score; below it real utilization is absent and the class unknown.").
		Default(strconv.FormatFloat(defaults.Judge.MinCoverage, 'g', -1, 64)).Float64Var(&opts.judge.MinCoverage)
	app.Flag("expected-gpus", "How many GPUs this node should have; 0 expects none in particular. A GPU lost before the proxy started is still missed: kpulse_gpu_present is 0 for each that lacks.").
		Default("0").PlaceHolder("N").IntVar(&opts.expectedGPUs)
	app.Flag("config.file", "Settings in YAML: several sources, credentials of an exporter, thresholds, warning temperatures, health conditions, names of families, and what some flags say, which win over it. deploy/config.example.yml shows them all.").
		PlaceHolder("FILE").StringVar(&opts.configFile)
	registerRules(app, opts, w, defaults)
	app.Flag("series-limit", "Most series of our own; GPUs past three quarters of it, and pods and jobs past the rest, are left out and counted.").
		Default(defaults.Limits.Series.String()).IntVar(&opts.seriesLimit)
	opts.web = webflag.AddFlags(app, defaultListen)
	app.Flag("web.max-requests", "Most scrapes served at a time; more get 503.").
		Default(defaults.Limits.MaxRequests.String()).IntVar(&opts.maxRequests)
	app.Flag("web.enable-lifecycle", "Let POST /-/reload read config file and rules again; SIGHUP always does.").BoolVar(&opts.lifecycle)
	app.Flag("web.enable-pprof", "Serve Go profiles at /debug/pprof.").BoolVar(&opts.pprof)
	app.Flag("web.expose-processes", "Show what --collector.processes lists to everybody who can reach us; prefer --web.config.file with authentication beside it.").
		BoolVar(&opts.exposeProcesses)
	promslogflag.AddFlags(app, opts.log)
	return w
}

// registerLocal declares the flags of the backends that read this machine.
func registerLocal(app *kingpin.Application, opts *options) {
	app.Flag("dcgm.host", "dcgm: the host engine to read, as dcgmi takes it: HOST[:PORT] or unix://PATH (default: the one on this machine).").
		PlaceHolder("HOST").StringVar(&opts.dcgmHost)
	app.Flag("gpus", "dcgm, nvml, and --once, --export and --tui of all: which GPUs, by index, range or the beginning of a UUID (default: all; with --once, --export and --tui of this machine those of CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, SLURM_STEP_GPUS or SLURM_JOB_GPUS).").
		PlaceHolder("0,2-3").StringVar(&opts.gpus)
	app.Flag("show-all", "dcgm, nvml, and --once, --export and --tui of all: all GPUs, whatever the environment says.").BoolVar(&opts.showAll)
	app.Flag("hpc-job-mapping-dir", "dcgm, nvml: directory in which the batch system writes who holds each GPU, as dcgm-exporter takes it: a file named 0, or 2.1 for a MIG instance, with a job id on each line.").
		PlaceHolder("DIR").StringVar(&opts.jobMappingDir)
	app.Flag("collector.processes", "dcgm, nvml: list the processes on the GPUs at /api/v1/processes: pid, user, group, name, memory. Only for clients on this machine, and never as series.").
		BoolVar(&opts.processes)
	app.Flag("collector.processes.cmdline", "With --collector.processes: list the command line of each process in place of its name. Command lines may hold secrets, such as tokens and passwords, which are shown as they are.").
		BoolVar(&opts.commandLines)
}

// registerPresenting declares the flags that write readings out.
func registerPresenting(app *kingpin.Application, opts *options, w *words) {
	app.Flag("once", "Read once, print the devices as text, and end.").BoolVar(&opts.once)
	app.Flag("json", "With --once: print them as JSON.").BoolVar(&opts.json)
	w.export = app.Flag("export", "Write every reading as CSV to stdout, a row for each device: default (nine columns of KempnerPulse), all (its 34), all+ (those and ours), or names of columns. With --once, one reading.").
		PlaceHolder("default|all|all+|COLUMNS").String()
}

// registerTUI declares the flags of the terminal dashboard.
func registerTUI(app *kingpin.Application, opts *options) {
	app.Flag("tui", "Show the GPUs on this terminal: of the proxy on this machine, else read by ourselves (always where --backend, --source, --replay or --record is given, or a --config.file with sources). A proxy reads and computes as it was started: what else is said of that here has no effect on it.").BoolVar(&opts.tui)
	app.Flag("tui.url", "tui: a kpulse-proxy to show, as http://NODE:9401/metrics or NODE; repeat it for several nodes.").
		PlaceHolder("URL").StringsVar(&opts.tuiURLs)
	app.Flag("tui.http-config", "tui: file with credentials and TLS for these, in YAML as Prometheus' http_config.").
		PlaceHolder("FILE").StringVar(&opts.tuiHTTP)
}

// registerRules declares the flags of recording rules.
func registerRules(app *kingpin.Application, opts *options, w *words, defaults config.Config) {
	app.Flag("rules.file", "Prometheus rule file, or glob of such, whose recording rules the proxy evaluates itself over what it serves; their results stand at the end of /metrics. Can be given several times (in the environment: one in a line).").
		PlaceHolder("FILE").StringsVar(&opts.ruleFiles)
	w.ruleWindow = app.Flag("rules.window", "How far back rules can see; a rule that looks further is refused. Memory grows with what they use of it.").
		Default(defaults.Rules.Window.String()).PlaceHolder("5m").String()
	app.Flag("rules.max-samples", "Most samples that are kept for rules, of 16 bytes each and up to as much again, and that one evaluation may load.").
		Default(defaults.Rules.MaxSamples.String()).IntVar(&opts.ruleSamples)
}

// into validates the words and completes opts.
func (w *words) into(opts *options) error {
	var err error
	if opts.passthrough, err = expose.ParsePassthrough(*w.passthrough); err != nil {
		return fmt.Errorf("--passthrough: %w", err)
	}
	if opts.judge.Missing, err = compute.ParseMissing(*w.missing); err != nil {
		return fmt.Errorf("--missing-inputs: %w", err)
	}
	if err = (*config.Size)(&opts.maxBody).Set(*w.maxBody); err != nil {
		return fmt.Errorf("--source.max-body: %w", err)
	}
	if opts.minInterval, err = parseDuration(*w.minInterval); err != nil {
		return fmt.Errorf("--source.min-interval: %w", err)
	}
	if opts.timeout, err = parseDuration(*w.timeout); err != nil {
		return fmt.Errorf("--source.timeout: %w", err)
	}
	if opts.ruleWindow, err = parseDuration(*w.ruleWindow); err != nil {
		return fmt.Errorf("--rules.window: %w", err)
	}
	if err = w.intoReplay(opts.origin); err != nil {
		return err
	}
	if opts.backend, err = parseBackend(*w.backend); err != nil {
		return fmt.Errorf("--backend: %w", err)
	}
	if err = opts.intoColumns(*w.export, opts.origin("export") != fromFile); err != nil {
		return err
	}
	opts.source, opts.poll = cmp.Or(*w.source, opts.backend.source), opts.backend.standard
	if opts.nodeName = *w.nodeName; opts.nodeName == "" {
		opts.nodeName = os.Getenv("NODE_NAME")
	}
	if err := opts.check(); err != nil {
		return err
	}
	if opts.tuiURLs, err = nodeURLs(opts.tuiURLs); err != nil {
		return err
	}
	return w.weigh(opts)
}

// intoReplay takes --replay for what it is short for.
func (w *words) intoReplay(origin func(flag string) origin) error {
	if *w.replay == "" {
		return nil
	}
	if origin("backend") == fromCommandLine || origin("source") == fromCommandLine {
		return errors.New("--replay=FILE is short for --backend=replay --source=FILE; give one of them")
	}
	*w.backend, *w.source = "replay", *w.replay
	return nil
}

// weigh sets the weights, given or by preset. Given ones stand in the preset's
// place unless it comes from nearer by.
func (w *words) weigh(opts *options) (err error) {
	judge := &opts.judge
	judge.Preset = *w.preset
	if _, err = compute.New(*judge); err != nil {
		return fmt.Errorf("--preset: %w", err)
	}
	if *w.weights == "" {
		return nil
	}
	weights, err := compute.ParseWeights(*w.weights)
	if err != nil {
		return fmt.Errorf("--weights: %w", err)
	}
	if opts.origin("weights") >= opts.origin("preset") {
		judge.Preset, judge.Weights = compute.Custom, weights
	}
	return nil
}

// check refuses numbers that make no sense.
func (o *options) check() error {
	switch {
	case o.presents() && o.tui:
		return errors.New("--tui draws on the terminal, --once and --export write to it; give one of them")
	case (o.presents() || o.tui) && o.origin("rules.file") == fromCommandLine:
		return errors.New("--rules.file: results are served at /metrics, and --once, --export and --tui show none; leave it out")
	case !o.tui && (len(o.tuiURLs) > 0 || o.tuiHTTP != ""):
		return errors.New("--tui.url and --tui.http-config are for --tui; give that too")
	case !(o.judge.MinCoverage >= 0 && o.judge.MinCoverage <= 1):
		return fmt.Errorf("--min-coverage=%g: not a share; give a number from 0 to 1, such as 0.5", o.judge.MinCoverage)
	case o.minInterval < 0 || o.minInterval > maxInterval:
		return fmt.Errorf("--source.min-interval=%s: out of range; 0s reads the exporter on every scrape, and above %s old readings would pass for new", o.minInterval, maxInterval)
	case o.timeout <= 0:
		return fmt.Errorf("--source.timeout=%s: must be above 0, such as 10s", o.timeout)
	case o.expectedGPUs < 0 || o.expectedGPUs > maxExpected:
		return fmt.Errorf("--expected-gpus=%d: out of range; give how many GPUs the node has, at most %d, or 0", o.expectedGPUs, maxExpected)
	case o.maxRequests < 1:
		return fmt.Errorf("--web.max-requests=%d: must be at least 1", o.maxRequests)
	case o.commandLines && !o.processes:
		return errors.New("--collector.processes.cmdline: no processes are listed; give --collector.processes too")
	case o.exposeProcesses && !o.processes:
		return errors.New("--web.expose-processes: no processes are listed; give --collector.processes too")
	case config.Duration(o.ruleWindow) < config.MinWindow || config.Duration(o.ruleWindow) > config.MaxWindow:
		return fmt.Errorf("--rules.window=%s: out of range; give %s to %s", o.ruleWindow, config.MinWindow, config.MaxWindow)
	case o.ruleSamples < 1:
		return fmt.Errorf("--rules.max-samples=%d: must be at least 1", o.ruleSamples)
	case o.seriesLimit < 1:
		return fmt.Errorf("--series-limit=%d: must be at least 1", o.seriesLimit)
	}
	return nil
}

package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// checkups are the checks of doctor, the most useful first.
var checkups = []checkup{
	{name: "config file", backend: true, run: checkSources},
	{name: "exporter", backend: true, run: checkExporters},
	{name: "exporter pods", backend: true, run: checkPods},
	{name: "host engine", backend: true, local: true, run: checkHostEngine},
	{name: "NVML", backend: true, local: true, run: checkNVML},
	{name: "port", demo: true, run: checkPort},
	{name: "kernel log", run: checkKernelLog},
	{name: "kubelet", run: checkKubelet},
	{name: "Kubernetes API", run: checkAPI},
	{name: "job mapping", local: true, run: func(_ context.Context, d *doctor) diagnosis {
		return checkFolder("hpc-job-mapping-dir", cmp.Or(d.opts.JobMappingDir, "/run/kpulse/job-mapping"))
	}},
	{name: "job description", run: func(_ context.Context, d *doctor) diagnosis {
		return checkFolder("hpc-job-info-dir", cmp.Or(d.opts.JobInfoDir, "/run/kpulse/job-info"))
	}},
	{name: "environment", run: checkEnvironment},
}

// exporterPorts are the ports of exporters of NVIDIA's GPUs: dcgm-exporter, that of AKS,
// nvidia_gpu_exporter and nvidia_gpu_prometheus_exporter.
var exporterPorts = []string{"9400", "19400", "9835", "9445"}

// dialPatience bounds a connection to a port of this machine.
const dialPatience = 2 * time.Second

// Probe is the result of reading a source once.
type Probe struct {
	Name     string
	Scraped  bool // from an exporter
	Devices  int
	Missing  []string           // inputs of our scores that no device has
	Unserved bool               // the source has no samples of some of them
	Failure  *canonical.Failure // why it could not be read; nil if it was
	Notes    []canonical.Note   // problems of a source that has a reading
}

// NoPod is the kind of failure if no exporter's pod runs.
const NoPod = "not_read"

// state returns the state of the check that read a source.
func (p *Probe) state() state {
	switch {
	case p.Failure == nil && p.Devices > 0:
		return stateWorks
	case p.Failure == nil:
		return stateRefused
	case p.Failure.Timeout:
		return stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported), NoPod}, p.Failure.Kind):
		return stateMissing
	}
	return stateRefused
}

// explain returns why a source cannot be read or has no GPU, and what to do.
func (p *Probe) explain() (cause, remedy string) {
	switch {
	case p.Failure != nil:
		return p.Failure.Cause, p.Failure.Remedy
	case len(p.Notes) > 0:
		return p.Name + " is read and has no GPU: " + p.Notes[0].Cause, p.Notes[0].Remedy
	}
	return p.Name + " is read and has no GPU", "check whether this is an exporter of NVIDIA's GPUs, and whether it sees them"
}

// describe returns the devices and problems of a source, and what to do about missing readings.
func (p *Probe) describe() (text string, remedies []string) {
	text = fmt.Sprintf("%s: %s", p.Name, diag.Count(p.Devices, "device"))
	for _, n := range p.Notes {
		text += "; " + n.Cause
		remedies = appendNew(remedies, n.Remedy)
	}
	if p.Scraped && p.Unserved {
		remedies = appendNew(remedies, "scores lack these: start the exporter with -f deploy/dcgm-counters.csv, or add to its counters file what kpulse-proxy check counters FILE names")
	}
	return text, remedies
}

// mostLines bounds the lines of a diagnosis for readable sources, and those for unreadable ones;
// further sources are counted.
const mostLines = 8

// merged returns one diagnosis for all sources. flags are those that use the readable sources; nil
// means --source with the name of the first.
func merged(all []Probe, flags []string) diagnosis {
	var read, unread, without, remedies []string
	devices, found := 0, diagnosis{State: stateMissing}
	for i := range all {
		p := &all[i]
		if state := p.state(); i == 0 || state < found.State {
			found.State = state
		}
		if p.state() != stateWorks {
			cause, remedy := p.explain()
			if unread = append(unread, diag.Text(cause)); len(unread) <= mostLines {
				remedies = appendNew(remedies, diag.Text(remedy))
			}
			continue
		}
		text, more := p.describe()
		read, remedies, without = append(read, diag.Text(text)), appendNew(remedies, more...), appendNew(without, strings.Join(p.Missing, ", "))
		if devices += p.Devices; flags == nil {
			flags = []string{"--source=" + p.Name}
		}
	}
	if n := len(read); n > mostLines {
		read = []string{fmt.Sprintf("%s, with %s", diag.Count(n, "source"), diag.Count(devices, "device"))}
	}
	for _, missing := range without {
		read = append(read, "without "+missing)
	}
	if n := len(unread) - mostLines; n > 0 {
		unread = append(unread[:mostLines], fmt.Sprintf("%d more cannot be read", n))
	}
	if found.Found, found.Remedy = strings.Join(append(read, unread...), "\n"), strings.Join(remedies, "\n"); found.State == stateWorks {
		found.Flags = flags
	}
	return found
}

// appendNew appends the texts that are not in texts yet.
func appendNew(texts []string, more ...string) []string {
	for _, text := range more {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// refusedBy returns the diagnosis of an error.
func refusedBy(err error) diagnosis {
	f := FailureOf(err)
	return diagnosis{State: stateRefused, Found: f.Cause, Remedy: f.Remedy}
}

// FailureOf returns cause and remedy of an error.
func FailureOf(err error) *canonical.Failure {
	if f, is := errors.AsType[*canonical.Failure](err); is {
		return f
	}
	if e, is := errors.AsType[*source.Error](err); is {
		return &canonical.Failure{Kind: string(e.Failure), Timeout: e.Failure == source.Timeout, Cause: e.Cause, Remedy: e.Remedy}
	}
	return &canonical.Failure{Kind: string(source.Broken), Cause: err.Error()}
}

// checkSources reads the sources of the config file, if there is one.
func checkSources(ctx context.Context, d *doctor) diagnosis {
	switch {
	case d.configFile == "":
		return diagnosis{State: stateMissing, Found: "none is given; none is needed"}
	case d.refused != nil:
		if _, wrong := errors.AsType[diag.Problems](d.refused); !wrong { // it cannot be read
			return refusedBy(d.refused)
		}
		return diagnosis{State: stateRefused, Found: d.refused.Error(), Remedy: "correct it, and see: kpulse-proxy check config " + d.configFile}
	case len(d.upstreams) == 0 && d.opts.Kube.Discover.Selector != "":
		return diagnosis{State: stateMissing, Found: d.configFile + " is valid and names no sources; what it discovers is checked below, as exporter pods"}
	case len(d.upstreams) == 0:
		return diagnosis{State: stateMissing, Found: d.configFile + " is valid and names no sources", Remedy: "to apply its other settings, add to the command below: --config.file=" + d.configFile}
	}
	return merged(d.Read(ctx, d.opts, d.upstreams), d.discovering())
}

// read reads sources that the config file does not name.
func (d *doctor) read(ctx context.Context, flags []string, all ...settings.Source) diagnosis {
	var upstreams []settings.Upstream
	for _, from := range all {
		from.NodeName = d.opts.FlagSource.NodeName
		s, err := d.opts.Resolve(from)
		if err != nil {
			return refusedBy(err)
		}
		upstreams = append(upstreams, s)
	}
	return merged(d.Read(ctx, d.opts, upstreams), flags)
}

// checkExporters reads the given exporter, or those that listen on exporterPorts.
func checkExporters(ctx context.Context, d *doctor) diagnosis {
	if given := d.opts.FlagSource.Source; given != "" {
		return d.read(ctx, nil, settings.Source{Source: given})
	}
	var listening []settings.Source
	for _, port := range exporterPorts {
		connection, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", "localhost:"+port)
		if err == nil {
			_ = connection.Close() // nothing was written
			listening = append(listening, settings.Source{Source: "http://localhost:" + port + "/metrics"})
		}
	}
	if listening == nil {
		return diagnosis{State: stateMissing, Found: "nothing listens at localhost where exporters do (ports " + strings.Join(exporterPorts, ", ") + ")",
			Remedy: "if one runs elsewhere: kpulse-proxy doctor --source=http://ADDRESS:9400/metrics"}
	}
	return d.read(ctx, nil, listening...)
}

// checkHostEngine reads through dcgmi.
func checkHostEngine(ctx context.Context, d *doctor) diagnosis {
	flags, host := []string{"--backend=dcgm"}, d.opts.FlagSource.DCGMHost
	if host != "" {
		flags = append(flags, "--dcgm.host="+host)
	}
	return d.read(ctx, flags, settings.Source{Backend: "dcgm", DCGMHost: host})
}

// checkNVML reads through the driver's library.
func checkNVML(ctx context.Context, d *doctor) diagnosis {
	return d.read(ctx, []string{"--backend=nvml"}, settings.Source{Backend: "nvml"})
}

// checkPods reads the exporters that --kube.discover finds, if a cluster is known.
func checkPods(ctx context.Context, d *doctor) diagnosis {
	if _, err := holders.NewClient(d.opts.Kube.Config, ""); errors.Is(err, holders.ErrNoCluster) {
		return diagnosis{State: stateMissing, Found: "no Kubernetes cluster is known here"}
	}
	opts, flags := *d.opts, d.discovering()
	if opts.Kube.Discover.Selector == "" {
		opts.Kube.Discover.Selector, flags = holders.DefaultSelector, append([]string{"--kube.discover"}, flags...)
	}
	return merged(d.Pods(ctx, &opts), flags)
}

// discovering returns the settings of --kube.discover that doctor was given, as flags.
func (d *doctor) discovering() (flags []string) {
	if d.configFile != "" && d.refused == nil {
		flags = append(flags, "--config.file="+d.configFile)
	}
	for _, name := range []string{"kube.discover", "kube.discover-namespace", "kube.config", "node-name"} {
		if f := d.opts.Given.Flag(name); f.Texts != nil && f.Adopted == "" && !d.opts.IsZero(f.Setting) {
			flags = append(flags, f.Setting.Typed(f.String()))
		}
	}
	return flags
}

// checkPort briefly listens on the address of the server, or else on another port.
func checkPort(ctx context.Context, d *doctor) diagnosis {
	address := d.opts.Listen[0]
	var flags []string
	if address != settings.DefaultListen {
		flags = []string{"--web.listen-address=" + address}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		_ = listener.Close() // without a connection
		return diagnosis{State: stateWorks, Found: address + " is free", Flags: flags}
	}
	refused := diagnosis{State: stateRefused, Found: "cannot listen: " + err.Error(), Remedy: "ss -ltnp names the program that listens; stop it"}
	if url := settings.LocalProxy(d.opts.Listen); url != "" {
		if _, ours := greet(ctx, http.DefaultClient, url, dialPatience); ours {
			look := "kpulse-proxy --tui"
			if address != settings.DefaultListen {
				look += " --tui.url=" + strings.TrimSuffix(url, "/metrics")
			}
			refused.Found, refused.Remedy = "a kpulse-proxy listens at "+address+" already", "show it: "+look
		}
	}
	host, _, _ := net.SplitHostPort(address)
	if listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0")); err == nil {
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		_ = listener.Close() // without a connection
		flag := "--web.listen-address=" + net.JoinHostPort(host, port)
		refused.Remedy, refused.Flags = refused.Remedy+"; or choose another address: "+flag, []string{flag}
	}
	return refused
}

// checkKernelLog opens the kernel's log.
func checkKernelLog(_ context.Context, d *doctor) diagnosis {
	path := cmp.Or(d.opts.KernelLog, settings.DefaultKernelLog)
	err := kernellog.Readable(path)
	switch {
	case err == nil:
		return diagnosis{State: stateWorks, Found: path + " can be read: XIDs have their time, sub-code and process", Flags: []string{settings.SettingOf("kernel-log").Typed(path)}}
	case errors.Is(err, os.ErrPermission):
		return diagnosis{State: stateRefused, Found: err.Error(), Remedy: "run with the capability CAP_SYSLOG, and where device files are denied with access to " + path}
	}
	return diagnosis{State: stateMissing, Found: err.Error(), Remedy: "see deploy/systemd/kernel-log.conf; without it, XIDs come only from the source"}
}

// checkKubelet asks the kubelet once which containers have which devices.
func checkKubelet(ctx context.Context, d *doctor) diagnosis {
	socket := cmp.Or(d.opts.Kube.PodResources, settings.DefaultPodResources)
	if _, err := os.Stat(socket); errors.Is(err, os.ErrNotExist) {
		return diagnosis{State: stateMissing, Found: "there is no " + socket, Remedy: "on a Kubernetes node mount its directory into the pod; elsewhere leave --kube.pod-resources out"}
	}
	if err := holders.AskKubelet(ctx, socket); err != nil {
		found := refusedBy(err)
		if ctx.Err() != nil {
			found.State = stateSilent
		}
		return found
	}
	return diagnosis{State: stateWorks, Found: socket + " answers: pods are known for each GPU", Flags: []string{settings.SettingOf("kube.pod-resources").Typed(socket)}}
}

// rights are the rights at the API server that flags need. deploy/kubernetes/rbac.yaml grants
// them.
var rights = []struct {
	flag, grant string
	access      []holders.Access
}{
	{"--kube.workloads", "workloads", []holders.Access{{Verb: "get", Resource: "pods"}, {Verb: "get", Group: "apps", Resource: "replicasets"}, {Verb: "get", Group: "batch", Resource: "jobs"}}},
	{"--kube.discover", "discovery", []holders.Access{{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"}}},
}

// checkAPI asks the API server what we may do.
func checkAPI(ctx context.Context, d *doctor) diagnosis {
	client, err := holders.NewClient(d.opts.Kube.Config, "kpulse-proxy/"+version.Version)
	if errors.Is(err, holders.ErrNoCluster) {
		return diagnosis{State: stateMissing, Found: "this does not run in a pod with a service account", Remedy: "for --kube.workloads and --kube.discover elsewhere: --kube.config=FILE"}
	}
	if err != nil {
		return refusedBy(err)
	}
	result := diagnosis{State: stateRefused}
	var lacks, may []string
	for _, r := range rights {
		access := slices.Clone(r.access)
		for i := range access {
			if r.grant == "discovery" {
				access[i].Namespace = d.opts.Kube.Discover.Namespace
			}
		}
		denied, err := client.Denied(ctx, access)
		switch {
		case ctx.Err() != nil:
			return diagnosis{State: stateSilent, Found: "the Kubernetes API server did not answer in time", Remedy: "check that this machine reaches it (network policies, --kube.config); " + GiveLonger}
		case err != nil:
			return refusedBy(err)
		case len(denied) > 0:
			lacks = append(lacks, fmt.Sprintf("%s lacks the right to %s", r.flag, denied[0]))
			result.Remedy = "kubectl apply -f deploy/kubernetes/rbac.yaml -l 'kpulse/for in (all, " + r.grant + ")'"
		default:
			may = append(may, "rights for "+r.flag)
			if result.State = stateWorks; r.grant == "workloads" {
				result.Flags = append(result.Flags, r.flag)
			}
		}
	}
	if config := d.opts.Kube.Config; config != "" && result.Flags != nil {
		result.Flags = append(result.Flags, "--kube.config="+config)
	}
	result.Found = strings.Join(append(may, lacks...), "; ")
	return result
}

// checkFolder looks at a directory that a batch system's prolog maintains.
func checkFolder(flag, dir string) diagnosis {
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return diagnosis{State: stateMissing, Found: "there is no " + dir, Remedy: "deploy/slurm/README.md has a prolog that keeps it; on a node without a batch system leave --" + flag + " out"}
	case err != nil:
		return diagnosis{State: stateRefused, Found: err.Error(), Remedy: "let the proxy's user read it: chmod o+rx " + dir}
	}
	return diagnosis{State: stateWorks, Found: fmt.Sprintf("%s has %s now", dir, diag.Count(len(files), "file")), Flags: []string{"--" + flag + "=" + dir}}
}

// checkEnvironment looks for unknown variables with our prefix.
func checkEnvironment(context.Context, *doctor) diagnosis {
	unknown := settings.UnknownVariables(os.Environ())
	if len(unknown) == 0 {
		return diagnosis{State: stateWorks, Found: "all KPULSE_ variables that are set are known"}
	}
	var found, remedies []string
	for _, v := range unknown {
		found = append(found, v.Name)
		if v.Near != "" {
			remedies = append(remedies, "write "+v.Near+" for "+v.Name)
		} else {
			remedies = append(remedies, "unset "+v.Name)
		}
	}
	return diagnosis{State: stateRefused, Found: strings.Join(found, ", ") + " in the environment is unknown", Remedy: strings.Join(remedies, "; ")}
}

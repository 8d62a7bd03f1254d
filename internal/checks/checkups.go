package checks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/settings"
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
	{name: "job mapping", local: true, run: checkFolder("hpc-job-mapping-dir", "/run/kpulse/job-mapping", func(o *settings.Options) string { return o.JobMappingDir })},
	{name: "job description", run: checkFolder("hpc-job-info-dir", "/run/kpulse/job-info", func(o *settings.Options) string { return o.JobInfoDir })},
	{name: "Slurm", run: checkSlurm},
	{name: "environment", run: checkEnvironment},
}

// exporterPorts are the ports of exporters of NVIDIA's GPUs: dcgm-exporter, that of AKS,
// nvidia_gpu_exporter and nvidia_gpu_prometheus_exporter.
var exporterPorts = []string{"9400", "19400", "9835", "9445"}

// dialPatience bounds a connection to a port of this machine.
const dialPatience = 2 * time.Second

// checkSources reads the sources of the config file, if there is one.
func checkSources(ctx context.Context, d *doctor) finding {
	switch {
	case d.configFile == "":
		return finding{State: stateMissing, Found: "none is given; none is needed"}
	case d.refused != nil:
		if _, wrong := errors.AsType[diag.Problems](d.refused); !wrong { // it cannot be read
			return refusedBy(d.refused)
		}
		return finding{State: stateRefused, Found: d.refused.Error(), Remedy: "correct it, and see: kpulse-proxy check config " + d.configFile}
	case len(d.opts.Sources) == 0 && d.opts.Kube.Discover.Selector != "":
		return finding{State: stateMissing, Found: d.configFile + " is valid and names no sources; what it discovers is checked below, as exporter pods"}
	case len(d.opts.Sources) == 0:
		return finding{State: stateMissing, Found: d.configFile + " is valid and names no sources", Remedy: "to apply its other settings, add to the command below: --config.file=" + d.configFile}
	}
	variables, flags := d.discovering()
	return merged(d.probe(ctx, variables), flags)
}

// checkExporters reads the given exporter, or those that listen on exporterPorts.
func checkExporters(ctx context.Context, d *doctor) finding {
	if source := d.opts.FlagSource.Source; source != "" {
		return merged(d.probe(ctx, []string{"KPULSE_BACKEND=prometheus", "KPULSE_SOURCE=" + source}), nil)
	}
	var best finding
	tried := 0
	for _, port := range exporterPorts {
		connection, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", "localhost:"+port)
		if err != nil {
			continue
		}
		_ = connection.Close() // nothing was written
		source := "http://localhost:" + port + "/metrics"
		got := merged(d.probe(ctx, []string{"KPULSE_BACKEND=prometheus", "KPULSE_SOURCE=" + source}), []string{"--source=" + source})
		if tried++; tried == 1 || got.State < best.State {
			best = got
		}
		if best.State == stateWorks {
			return best
		}
	}
	if tried == 0 {
		return finding{State: stateMissing, Found: "nothing listens at localhost where exporters do (ports " + strings.Join(exporterPorts, ", ") + ")",
			Remedy: "if one runs elsewhere: kpulse-proxy doctor --source=http://ADDRESS:9400/metrics"}
	}
	return best
}

// checkHostEngine reads through dcgmi.
func checkHostEngine(ctx context.Context, d *doctor) finding {
	flags, variables := []string{"--backend=dcgm"}, []string{"KPULSE_BACKEND=dcgm"}
	if host := d.opts.FlagSource.DCGMHost; host != "" {
		flags, variables = append(flags, "--dcgm.host="+host), append(variables, "KPULSE_DCGM_HOST="+host)
	}
	return merged(d.probe(ctx, variables), flags)
}

// checkNVML reads through the driver's library.
func checkNVML(ctx context.Context, d *doctor) finding {
	return merged(d.probe(ctx, []string{"KPULSE_BACKEND=nvml"}), []string{"--backend=nvml"})
}

// refusedBy returns the finding of an error that ends with a remedy.
func refusedBy(err error) finding {
	cause, remedy, _ := strings.Cut(err.Error(), "; ")
	return finding{State: stateRefused, Found: cause, Remedy: remedy}
}

// toldEach bounds the lines of a finding for readable sources, and those for unreadable ones;
// further sources are counted.
const toldEach = 8

// merged returns one finding for all sources. flags are those that use the readable sources; nil
// means --source with the name of the first.
func merged(all []Probed, flags []string) finding {
	var read, unread, without, remedies []string
	devices := 0
	found := finding{State: stateMissing}
	for i := range all {
		p := &all[i]
		state := p.state()
		if state < found.State || i == 0 {
			found.State = state
		}
		if state != stateWorks {
			cause, remedy := p.explain()
			if unread = append(unread, diag.Text(cause)); len(unread) <= toldEach {
				remedies = appendNew(remedies, diag.Text(remedy))
			}
			continue
		}
		text, remedy := p.describe()
		read, remedies = append(read, diag.Text(text)), appendNew(remedies, remedy...)
		without = appendNew(without, strings.Join(p.Missing, ", "))
		devices += p.Devices
		if flags == nil {
			flags = []string{"--source=" + p.Name}
		}
	}
	if n := len(read); n > toldEach {
		read = []string{fmt.Sprintf("%s, with %s", diag.Count(n, "source"), diag.Count(devices, "device"))}
	}
	for _, missing := range without {
		read = append(read, "without "+missing)
	}
	if n := len(unread) - toldEach; n > 0 {
		unread = append(unread[:toldEach], fmt.Sprintf("%d more cannot be read", n))
	}
	found.Found, found.Remedy = strings.Join(append(read, unread...), "\n"), strings.Join(remedies, "\n")
	if found.State == stateWorks {
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

// explain returns why a source cannot be read or has no GPU, and what to do.
func (p *Probed) explain() (cause, remedy string) {
	switch {
	case p.Kind != "":
		return p.Cause, p.Remedy
	case len(p.Amiss) > 0:
		return p.Name + " is read and has no GPU: " + p.Amiss[0].Cause, p.Amiss[0].Remedy
	}
	return p.Name + " is read and has no GPU", "check whether this is an exporter of NVIDIA's GPUs, and whether it sees them"
}

// describe returns the devices and problems of a source, and what to do about missing readings.
func (p *Probed) describe() (text string, remedies []string) {
	text = fmt.Sprintf("%s: %s", p.Name, diag.Count(p.Devices, "device"))
	for _, n := range p.Amiss {
		text += "; " + n.Cause
		remedies = appendNew(remedies, diag.Text(n.Remedy))
	}
	if p.Scraped && p.Unserved {
		remedies = appendNew(remedies, "scores lack these: start the exporter with -f deploy/dcgm-counters.csv, or add to its counters file what kpulse-proxy check counters FILE names")
	}
	return text, remedies
}

// checkPort briefly listens on the address of the server, or else on one of the next ports.
func checkPort(ctx context.Context, d *doctor) finding {
	address := d.opts.Listen[0]
	var flags []string
	if address != settings.DefaultListen {
		flags = []string{"--web.listen-address=" + address}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		_ = listener.Close() // without a connection
		return finding{State: stateWorks, Found: address + " is free", Flags: flags}
	}
	refused := finding{State: stateRefused, Found: "cannot listen: " + err.Error(), Remedy: "ss -ltnp names the program that listens; stop it"}
	if url := settings.LocalProxy(d.opts.Listen); url != "" {
		if _, ours := greet(ctx, http.DefaultClient, url, dialPatience); ours {
			look := "kpulse-proxy --tui"
			if address != settings.DefaultListen {
				look += " --tui.url=" + strings.TrimSuffix(url, "/metrics")
			}
			refused.Found, refused.Remedy = "a kpulse-proxy listens at "+address+" already", "show it: "+look
		}
	}
	if flag := elsewhere(ctx, address); flag != "" {
		refused.Remedy, refused.Flags = refused.Remedy+"; or choose another address: "+flag, []string{flag}
	}
	return refused
}

// elsewhere returns the flag of an address with the first of the next eight ports that is free, ""
// if none is.
func elsewhere(ctx context.Context, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	for n := first + 1; n <= first+8; n++ {
		next := net.JoinHostPort(host, strconv.Itoa(n))
		if listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", next); err == nil {
			_ = listener.Close() // without a connection
			return "--web.listen-address=" + next
		}
	}
	return ""
}

// checkKernelLog opens the kernel's log.
func checkKernelLog(_ context.Context, d *doctor) finding {
	path := d.opts.KernelLog
	flag := "--kernel-log"
	if path == "" {
		path = settings.DefaultKernelLog
	} else if path != settings.DefaultKernelLog {
		flag += "=" + string(path)
	}
	err := kernellog.Readable(string(path))
	if err == nil {
		return finding{State: stateWorks, Found: string(path) + " can be read: XIDs have their time, sub-code and process", Flags: []string{flag}}
	}
	found := finding{State: stateMissing, Found: err.Error(), Remedy: "see deploy/systemd/kernel-log.conf; without it, XIDs come only from the source"}
	if errors.Is(err, os.ErrPermission) {
		found.State, found.Remedy = stateRefused, "run with the capability CAP_SYSLOG, and where device files are denied with access to "+string(path)
	}
	return found
}

// checkKubelet asks the kubelet once which containers have which devices.
func checkKubelet(ctx context.Context, d *doctor) finding {
	socket := d.opts.Kube.PodResources
	flag := "--kube.pod-resources"
	if socket == "" {
		socket = settings.DefaultPodResources
	} else if socket != settings.DefaultPodResources {
		flag += "=" + string(socket)
	}
	if _, err := os.Stat(string(socket)); errors.Is(err, os.ErrNotExist) {
		return finding{State: stateMissing, Found: "there is no " + string(socket), Remedy: "on a Kubernetes node mount its directory into the pod; elsewhere leave --kube.pod-resources out"}
	}
	if err := holders.AskKubelet(ctx, string(socket)); err != nil {
		found := refusedBy(err)
		if ctx.Err() != nil {
			found.State = stateSilent
		}
		return found
	}
	return finding{State: stateWorks, Found: string(socket) + " answers: pods are known for each GPU", Flags: []string{flag}}
}

// checkFolder returns the check of a directory that a batch system's prolog maintains.
func checkFolder(flag, standard string, given func(*settings.Options) string) func(context.Context, *doctor) finding {
	return func(_ context.Context, d *doctor) finding {
		dir := given(d.opts)
		if dir == "" {
			dir = standard
		}
		files, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return finding{State: stateMissing, Found: "there is no " + dir, Remedy: "deploy/slurm/README.md has a prolog that keeps it; on a node without a batch system leave --" + flag + " out"}
		case err != nil:
			return finding{State: stateRefused, Found: err.Error(), Remedy: "let the proxy's user read it: chmod o+rx " + dir}
		}
		return finding{State: stateWorks, Found: fmt.Sprintf("%s has %s now", dir, diag.Count(len(files), "file")), Flags: []string{"--" + flag + "=" + dir}}
	}
}

// checkSlurm checks whether this is a Slurm node or job.
func checkSlurm(_ context.Context, d *doctor) finding {
	for _, entry := range d.environment {
		if name, value, _ := strings.Cut(entry, "="); name == "SLURM_JOB_ID" || name == "SLURMD_NODENAME" {
			return finding{State: stateWorks, Found: name + "=" + value + " is set: --tui, --once and --export show the GPUs of the job"}
		}
	}
	for _, path := range []string{"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/var/spool/slurmd/conf-cache/slurm.conf"} {
		if _, err := os.Stat(path); err == nil {
			return finding{State: stateWorks, Found: "a Slurm node: " + filepath.Dir(path) + " is there", Remedy: "for users, accounts and jobs of GPUs see deploy/slurm/README.md"}
		}
	}
	return finding{State: stateMissing, Found: "there is neither a job's environment nor a configuration of Slurm"}
}

// checkEnvironment looks for unknown variables with our prefix.
func checkEnvironment(_ context.Context, d *doctor) finding {
	unknown := settings.UnknownVariables(d.environment)
	if len(unknown) == 0 {
		return finding{State: stateWorks, Found: "all KPULSE_ variables that are set are known"}
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
	return finding{State: stateRefused, Found: strings.Join(found, ", ") + " in the environment is unknown", Remedy: strings.Join(remedies, "; ")}
}

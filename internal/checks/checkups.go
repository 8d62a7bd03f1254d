package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/version"

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
	{name: "host engine", backend: true, local: true, run: func(ctx context.Context, d *doctor) diagnosis {
		flags, host := []string{"--backend=dcgm"}, d.opts.FlagSource.DCGMHost
		if host != "" {
			flags = append(flags, "--dcgm.host="+host)
		}
		return d.readSources(ctx, flags, settings.Source{Backend: "dcgm", DCGMHost: host})
	}},
	{name: "NVML", backend: true, local: true, run: func(ctx context.Context, d *doctor) diagnosis {
		return d.readSources(ctx, []string{"--backend=nvml"}, settings.Source{Backend: "nvml"})
	}},
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

// checkSources reads the sources of the config file, if there is one.
func checkSources(ctx context.Context, d *doctor) diagnosis {
	switch {
	case d.configFile == "":
		return diagnosis{State: stateMissing, Found: "none is given; none is needed"}
	case d.refused != nil:
		return diagnosis{State: stateRefused, Found: d.refused.Error(), Remedy: "correct it, and see: kpulse-proxy check config " + d.configFile}
	case len(d.upstreams) == 0:
		return diagnosis{State: stateMissing, Found: d.configFile + " is valid and names no sources",
			Remedy: "to apply its other settings, add to the command below: --config.file=" + d.configFile}
	}
	return d.read(ctx, d.discovering(), d.upstreams)
}

// checkExporters reads the given exporter, or those that listen on exporterPorts.
func checkExporters(ctx context.Context, d *doctor) diagnosis {
	if given := d.opts.FlagSource.Source; given != "" {
		return d.readSources(ctx, nil, settings.Source{Source: given})
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
	return d.readSources(ctx, nil, listening...)
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
		return diagnosis{State: stateWorks, Found: path + " can be read: XIDs have their time, sub-code and process",
			Flags: []string{settings.SettingOf("kernel-log").Typed(path)}}
	case errors.Is(err, os.ErrPermission):
		return diagnosis{State: stateRefused, Found: err.Error(),
			Remedy: "run with the capability CAP_SYSLOG, and where device files are denied with access to " + path}
	}
	return diagnosis{State: stateMissing, Found: err.Error(), Remedy: "see deploy/systemd/kernel-log.conf; without it, XIDs come only from the source"}
}

// checkFolder looks at a directory that a batch system's prolog maintains.
func checkFolder(flag, dir string) diagnosis {
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return diagnosis{State: stateMissing, Found: "there is no " + dir,
			Remedy: "deploy/slurm/README.md has a prolog that keeps it; on a node without a batch system leave --" + flag + " out"}
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

// checkAPI asks the API server for the rights of --kube.workloads and --kube.discover, which
// deploy/kubernetes/rbac.yaml grants.
func checkAPI(ctx context.Context, d *doctor) diagnosis {
	client, err := holders.NewClient(d.opts.Kube.Config, "kpulse-proxy/"+version.Version)
	if errors.Is(err, holders.ErrNoCluster) {
		return diagnosis{State: stateMissing, Found: "this does not run in a pod with a service account",
			Remedy: "for --kube.workloads and --kube.discover elsewhere: --kube.config=FILE"}
	} else if err != nil {
		return failed(err)
	}
	result := diagnosis{State: stateRefused}
	var may, lacks []string
	namespace := d.opts.Kube.Discover.Namespace
	for _, r := range []struct {
		flag, grant string
		access      []holders.Access
	}{
		{"--kube.workloads", "workloads",
			[]holders.Access{{Verb: "get", Resource: "pods"}, {Verb: "get", Group: "apps", Resource: "replicasets"}, {Verb: "get", Group: "batch", Resource: "jobs"}}},
		{"--kube.discover", "discovery",
			[]holders.Access{{Verb: "list", Resource: "pods", Namespace: namespace}, {Verb: "watch", Resource: "pods", Namespace: namespace}}},
	} {
		denied, err := client.Denied(ctx, r.access)
		switch {
		case ctx.Err() != nil:
			return diagnosis{State: stateSilent, Found: "the Kubernetes API server did not answer in time",
				Remedy: "check that this machine reaches it (network policies, --kube.config); " + longer}
		case err != nil:
			return failed(err)
		case len(denied) > 0:
			lacks = append(lacks, fmt.Sprintf("%s lacks the right to %s", r.flag, denied[0]))
			result.Remedy = "kubectl apply -f deploy/kubernetes/rbac.yaml -l 'kpulse/for in (all, " + r.grant + ")'"
			continue
		}
		may = append(may, "rights for "+r.flag)
		if result.State = stateWorks; r.grant == "workloads" {
			result.Flags = append(result.Flags, r.flag)
			if config := d.opts.Kube.Config; config != "" {
				result.Flags = append(result.Flags, "--kube.config="+config)
			}
		}
	}
	result.Found = strings.Join(append(may, lacks...), "; ")
	return result
}

// checkKubelet asks the kubelet once which containers have which devices.
func checkKubelet(ctx context.Context, d *doctor) diagnosis {
	socket := cmp.Or(d.opts.Kube.PodResources, settings.DefaultPodResources)
	if _, err := os.Stat(socket); errors.Is(err, os.ErrNotExist) {
		return diagnosis{State: stateMissing, Found: "there is no " + socket,
			Remedy: "on a Kubernetes node mount its directory into the pod; elsewhere leave --kube.pod-resources out"}
	}
	if err := holders.AskKubelet(ctx, socket); err != nil {
		found := failed(err)
		if found.State = stateRefused; ctx.Err() != nil {
			found.State = stateSilent
		}
		return found
	}
	return diagnosis{State: stateWorks, Found: socket + " answers: pods are known for each GPU",
		Flags: []string{settings.SettingOf("kube.pod-resources").Typed(socket)}}
}

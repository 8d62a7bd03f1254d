package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

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

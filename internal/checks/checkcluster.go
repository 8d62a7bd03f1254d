package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// checkPods reads the exporters that --kube.discover finds, if a cluster is known.
func checkPods(ctx context.Context, d *doctor) finding {
	if _, err := holders.NewClient(d.opts.Kube.Config, ""); errors.Is(err, holders.ErrNoCluster) {
		return finding{State: stateMissing, Found: "no Kubernetes cluster is known here"}
	}
	variables, flags := d.discovering()
	if d.opts.Kube.Discover.Selector == "" {
		variables, flags = append(variables, "KPULSE_KUBE_DISCOVER=true"), append([]string{"--kube.discover"}, flags...)
	}
	return merged(d.probe(ctx, variables, PodsWord), flags)
}

// discovering returns the settings of --kube.discover that doctor was given, as variables for a
// probe and as flags.
func (d *doctor) discovering() (variables, flags []string) {
	if d.configFile != "" && d.refused == nil {
		variables, flags = append(variables, "KPULSE_CONFIG_FILE="+d.configFile), append(flags, "--config.file="+d.configFile)
	}
	for _, name := range []string{"kube.discover", "kube.discover-namespace", "kube.config", "node-name"} {
		f := d.opts.Given.Flag(name)
		switch {
		case d.opts.IsZero(f.Setting) || f.Texts == nil:
		case f.Adopted != "":
			variables = append(variables, theirsOf(d.environment)...)
		default:
			variables, flags = append(variables, f.Setting.Variable()+"="+f.String()), append(flags, f.Setting.Typed(f.String()))
		}
	}
	return variables, flags
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
func checkAPI(ctx context.Context, d *doctor) finding {
	client, err := holders.NewClient(d.opts.Kube.Config, "kpulse-proxy/"+version.Version)
	if errors.Is(err, holders.ErrNoCluster) {
		return finding{State: stateMissing, Found: "this does not run in a pod with a service account", Remedy: "for --kube.workloads and --kube.discover elsewhere: --kube.config=FILE"}
	}
	if err != nil {
		return refusedBy(err)
	}
	result := finding{State: stateRefused}
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
			return finding{State: stateSilent, Found: "the Kubernetes API server did not answer in time", Remedy: "check that this machine reaches it (network policies, --kube.config); " + GiveLonger}
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

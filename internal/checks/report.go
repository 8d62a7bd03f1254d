package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

const reportUsage = `usage: kpulse-proxy report [<flags>] JOB

Prints which GPUs a job held, what it did with them and what it left unused, for each GPU
and in total, and what to change. JOB is the id in the batch system, NAMESPACE/POD, NAMESPACE/WORKLOAD or
WORKLOAD. The proxies of its nodes know it while it runs, and for two minutes after.

  --url=NODE               a proxy of its nodes; repeat it, or give a list: node[1-4,7]
                           (default: those of SLURM_JOB_NODELIST, else this machine's)
  --prometheus.url=URL     a Prometheus server that scrapes the proxies: also for a job that
                           is over, with peak memory, GPU-Util and idle stretches
  --json                   print JSON; cmd/kpulse-proxy/README.md has its keys
  --comment                print one line, such as for Slurm's AdminComment
  --timeout=10s            how long to wait for answers
  --tui.http-config=FILE   credentials and TLS settings

Exit status: 0 if all of it is known, 1 if a node or the server does not answer (the report
names the nodes that it lacks), 2 for wrong usage, 3 if nobody knows the job.

How does my job do?         kpulse-proxy report $SLURM_JOB_ID
From a login node:          kpulse-proxy report --url="$(squeue -h -j 4711 -o %N)" 4711
What did it do, last week?  kpulse-proxy report --prometheus.url=http://prometheus:9090 4711
A workload of Kubernetes:   kpulse-proxy report --prometheus.url=http://prometheus:9090 ml/train
`

// exitUnknownJob is the exit code if nobody knows the job.
const exitUnknownJob = 3

// Connect returns the client that asks proxies and Prometheus servers.
type Connect func(*settings.Options) (*http.Client, error)

// Report is the mode `report JOB`. It returns the exit code.
func Report(ctx context.Context, args []string, stdout, stderr io.Writer, connect Connect) int {
	if AsksForHelp(args) {
		fmt.Fprint(stdout, reportUsage)
		return settings.ExitDone
	}
	words, flags := wordsAndFlags(args)
	_, o, err := flagsFor("report", flags, stdout, "url", "prometheus.url", "json", "comment", "timeout", "tui.http-config", "web.listen-address")
	var urls []string
	switch {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case err != nil:
	case len(words) != 1 || words[0] == "":
		err = errors.New("report: name one job, and write flags with =, such as: kpulse-proxy report --url=node7 4711")
	case o.JSON && o.Comment:
		err = errors.New("--json and --comment are two forms of the same; choose one")
	case o.PrometheusURL != "" && len(o.CheckURLs) > 0:
		err = errors.New("--url asks proxies, and --prometheus.url a server in their place; choose one")
	default:
		urls, err = proxiesOf(o, words[0])
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy report --help says more)\n", err)
		return settings.ExitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.CheckTimeout))
	defer cancel()
	r, err := reportOf(ctx, words[0], o, urls, connect)
	known := r != nil && len(r.GPUs) > 0
	switch {
	case err != nil:
	case known && o.JSON:
		err = writeJSON(stdout, r)
	case known && o.Comment:
		_, err = fmt.Fprintln(stdout, r.Comment())
	case known:
		_, err = io.WriteString(stdout, r.Text())
	case len(r.Missing) == 0:
		fmt.Fprintf(stderr, "kpulse-proxy: job %s is not known; %s\n", words[0], remedies[r.Source])
		return exitUnknownJob
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	}
	for _, m := range r.Missing {
		fmt.Fprintf(stderr, "kpulse-proxy: %s is missing: %s\n", m.Node, m.Problem)
	}
	return min(len(r.Missing), settings.ExitFailed)
}

// remedies say where a job may be that nobody knows.
var remedies = map[string]string{
	fromProxies: "if it is over, ask a Prometheus server with --prometheus.url; if it runs, name its nodes with --url=NODE, and see whether " +
		"kpulse_allocation_info has it there",
	fromPrometheus: "a task of an array has an id of its own, as squeue -o %A shows it; and the server must have scraped the proxies of its nodes",
}

// proxiesOf returns the proxies to ask about a job: those of --url, or of the nodes of the job that this process is in; none for the one on
// this machine.
func proxiesOf(o *settings.Options, job string) (urls []string, err error) {
	lists, from := o.CheckURLs, "--url"
	if nodes := os.Getenv("SLURM_JOB_NODELIST"); len(lists) == 0 && nodes != "" && cmp.Or(os.Getenv("SLURM_JOB_ID"), job) == job {
		lists, from = []string{nodes}, "SLURM_JOB_NODELIST"
	}
	return settings.NodeURLs(from, lists...)
}

// reportOf asks for a job.
func reportOf(ctx context.Context, job string, o *settings.Options, urls []string, connect Connect) (*JobReport, error) {
	httpClient, err := connect(o)
	if err != nil {
		return nil, err
	}
	if o.PrometheusURL != "" {
		return fromServer(ctx, job, o.PrometheusURL, httpClient, time.Now())
	}
	if len(urls) == 0 {
		local := settings.LocalProxy(o.Listen)
		url, wants := Attach(ctx, httpClient, local, time.Duration(o.CheckTimeout))
		if wants != "" {
			return nil, errors.New(RefusedUs(url, wants, "ask it with --url="))
		}
		if url == "" {
			return nil, fmt.Errorf("no kpulse-proxy answers at %s; start it there, name those of the job's nodes with --url=NODE, or a Prometheus "+
				"server with --prometheus.url", local)
		}
		urls = []string{url}
	}
	targets := make([]client.Target, len(urls))
	for i, url := range urls {
		targets[i] = client.Target{URL: url, Client: httpClient}
	}
	return fromNodes(ctx, job, targets)
}

// severalOf returns an error if a name means jobs in several places, nil for one.
func severalOf(job, what string, places map[string]bool) error {
	if len(places) < 2 {
		return nil
	}
	remedy := "name one of them, as NAMESPACE/" + job
	if what == "cluster" {
		remedy = "ask a server that has only one of them"
	}
	return fmt.Errorf("%s is in the %ss %s; %s", job, what, strings.Join(slices.Sorted(maps.Keys(places)), ", "), remedy)
}

package checks

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// meaning is what the name of a job may mean: its allocations, for a Prometheus server as matchers, and whether it is an id, which never
// comes again.
type meaning struct {
	matchers string
	is       func(a *client.Allocation) bool
	id       bool
}

// meaningsOf returns the meanings of a name, the likeliest first.
func meaningsOf(job string) []meaning {
	if namespace, name, both := strings.Cut(job, "/"); both {
		return []meaning{
			{fmt.Sprintf("workload_namespace=%q,workload_pod=%q", namespace, name), func(a *client.Allocation) bool { return a.Namespace == namespace && a.Pod == name }, false},
			{fmt.Sprintf("workload_namespace=%q,workload_name=%q", namespace, name), func(a *client.Allocation) bool { return a.Namespace == namespace && a.Name == name }, false},
		}
	}
	return []meaning{
		{fmt.Sprintf("hpc_job=%q", job), func(a *client.Allocation) bool { return a.Job == job }, true},
		{fmt.Sprintf("workload_name=%q", job), func(a *client.Allocation) bool { return a.Name == job }, false},
	}
}

// page is what a proxy answered.
type page struct {
	node   *client.Node
	events []client.ServedEvent // nil if it gave no list
}

// fromNodes reports on a job from the proxies of its nodes: their counters hold what it did since it or the proxy began. The report has no
// GPUs if none knows the job.
func fromNodes(ctx context.Context, job string, targets []client.Target) (*JobReport, error) {
	pages := make([]page, len(targets))
	var asking sync.WaitGroup
	slots := make(chan struct{}, 64) // proxies asked at a time
	for i := range targets {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			pages[i] = page{client.Fetch(ctx, targets[i]), client.ListEvents(ctx, targets[i:i+1])[0]}
		})
	}
	asking.Wait()
	r := &JobReport{Job: job, Source: fromProxies}
	for _, p := range pages {
		problem := p.node.Err
		if source, unread := p.node.Unread(); problem == "" && unread > 0 {
			problem = more(source, unread) + " could not be read, and its GPUs are not known"
		}
		if problem != "" {
			r.Missing = append(r.Missing, missingNode{p.node.Name, problem})
		}
	}
	namespaces := map[string]bool{}
	for _, m := range meaningsOf(job) {
		for i := range pages {
			for _, g := range pages[i].node.GPUs {
				r.take(&pages[i], g, m.is, namespaces)
			}
		}
		if len(r.GPUs) > 0 {
			break
		}
	}
	r.finish()
	return r, severalOf(job, "namespace", namespaces)
}

// take adds a GPU if the job holds it or did, once if several proxies read it.
func (r *JobReport) take(p *page, g *client.GPU, is func(*client.Allocation) bool, namespaces map[string]bool) {
	of := jobGPU{
		Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID, Instance: g.Instance, Profile: g.Profile, Model: diag.Text(g.Model), Peak: reading(math.NaN()),
		Total: reading(g.Values[canonical.FramebufferTotal]),
	}
	var sum account
	mine, present := 0, 0
	for i, list := range [][]client.Allocation{g.Allocations, g.Ended} {
		for j := range list {
			if a := &list[j]; is(a) {
				mine, present = mine+1, present+1-i
				namespaces[a.Namespace] = true
				r.describe(a.Namespace, a.User, a.Account, a.Partition)
				sum.add(a)
			}
		}
	}
	if mine == 0 || slices.ContainsFunc(r.GPUs, func(o jobGPU) bool { return o.device() == of.device() }) {
		return
	}
	of.usage, of.Shared = sum.inHours(math.NaN()), len(g.Allocations) > present
	since := time.Time{} // of a shared GPU the job has a part of the time, which says nothing of when it began
	if (!of.Shared || present == 0) && sum.held > 0 {
		r.Seconds = max(r.Seconds, sum.held)
		since = p.node.At.Add(-time.Duration(sum.held * float64(time.Second)))
	}
	if present > 0 {
		v := &g.Values
		of.Now = &jobNow{g.Class.String(), reading(g.RealUtilization), reading(v[canonical.NVMLUtilization]), reading(v[canonical.FramebufferUsed]),
			reading(v[canonical.Power]), reading(v[canonical.Temperature])}
		of.addFaults(p, since)
		if gap := (missingNode{p.node.Name, "its list of events does not answer: XIDs and past conditions are not known"}); p.events == nil && !slices.Contains(r.Missing, gap) {
			r.Missing = append(r.Missing, gap)
		}
	}
	r.GPUs = append(r.GPUs, of)
}

// describe notes who owns the job, as the first that knows says.
func (r *JobReport) describe(namespace, user, account, partition string) {
	if r.Namespace+r.User+r.Account+r.Partition == "" {
		r.Namespace, r.User, r.Account, r.Partition = namespace, user, account, partition
	}
}

// add adds the account of an allocation.
func (a *account) add(of *client.Allocation) {
	a.held, a.utilized, a.known, a.energy = a.held+of.Seconds, a.utilized+of.UtilizedSeconds, a.known+of.KnownSeconds, a.energy+of.Energy
	for c, seconds := range of.Classes {
		a.classes[c] += seconds
	}
}

// addFaults adds what is raised on the board of a GPU, and what the events of its proxy have since a time.
func (g *jobGPU) addFaults(p *page, since time.Time) {
	add := func(c canonical.Condition, state canonical.Health) {
		if row := (conditionReport{c.String(), state.String()}); !slices.Contains(g.Conditions, row) {
			g.Conditions = append(g.Conditions, row)
		}
	}
	for _, o := range p.node.GPUs {
		if !o.IsInstance() && o.UUID == g.UUID && o.Hostname == g.Hostname && o.GPU == g.GPU {
			for _, raised := range o.Raised {
				add(raised.Condition, raised.State)
			}
		}
	}
	for _, e := range p.events {
		switch {
		case e.UUID != g.UUID || e.Hostname != g.Hostname || e.GPU != g.GPU || e.At.Before(since) || p.node.At.IsZero():
		case e.Kind == canonical.EventXID && !slices.Contains(g.XIDs, e.Code):
			g.XIDs = append(g.XIDs, e.Code)
		case e.Kind == canonical.EventRaised && e.Condition < canonical.NumConditions:
			add(e.Condition, e.State)
		}
	}
	slices.Sort(g.XIDs)
}

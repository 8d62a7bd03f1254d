package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	farthest      = 365 * 24 * time.Hour // how long ago a job may have been
	coarse        = time.Hour            // steps in which it is looked for: a server answers up to 11,000
	fine          = 5 * time.Second      // how precisely its begin and its end are found
	around        = 5 * time.Minute      // its counters are served for less after its end
	parts         = 300                  // of its life, in which the use of GPUs is looked at
	queriesAtOnce = 6
)

// server asks a Prometheus server about a job.
type server struct {
	api         promv1.API
	job, boards string // matchers of its allocations, and of the UUIDs that it held
	begin, end  time.Time
	step        time.Duration
}

// fromServer reports on a job from a Prometheus server. The report has no GPUs if the server has no such job.
func fromServer(ctx context.Context, job, address string, httpClient *http.Client, now time.Time) (*JobReport, error) {
	r := &JobReport{Job: job, Source: fromPrometheus}
	connection, err := api.NewClient(api.Config{Address: address, Client: httpClient})
	if err != nil || !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return r, errors.New("--prometheus.url: this is not a URL; give one such as http://prometheus:9090")
	}
	s := &server{api: promv1.NewAPI(connection)}
	for _, m := range meaningsOf(job) {
		s.job = m.matchers
		found, err := s.findLife(ctx, r, m.id, now)
		if err == nil && found {
			err = s.readAll(ctx, r)
		}
		if err != nil || found {
			return r, err
		}
	}
	return r, nil
}

// findLife finds when the allocations of the job were. A name that is no id may come again: its latest run counts.
func (s *server) findLife(ctx context.Context, r *JobReport, id bool, now time.Time) (found bool, err error) {
	at, err := s.course(ctx, "count(last_over_time(kpulse_allocation_info{JOB}[1h]))", now.Add(-farthest), now, coarse)
	if err != nil || len(at) == 0 {
		return false, err
	}
	first, last := 0, len(at)-1
	for i := 1; i <= last && !id; i++ {
		if before := at[i-1].Timestamp.Time(); at[i].Timestamp.Time().Sub(before) > coarse {
			first, r.Earlier = i, before
		}
	}
	// Where the subquery has no step with it, it was too short for one.
	edge := func(query string, at time.Time) (time.Time, error) {
		v, err := s.vector(ctx, query, at)
		if len(v) > 0 {
			at = time.UnixMilli(int64(v[0].Value * 1000))
		}
		return at, err
	}
	s.begin, err = edge("min(min_over_time(timestamp(kpulse_allocation_info{JOB})[1h:5s]))", at[first].Timestamp.Time())
	if err == nil {
		s.end, err = edge("max(max_over_time(timestamp(kpulse_allocation_info{JOB})[1h:5s]))", at[last].Timestamp.Time())
	}
	s.step = max(time.Second, (s.end.Sub(s.begin).Round(time.Second) / parts).Truncate(time.Millisecond)) // as the server does
	if r.Begin, r.Seconds = s.begin, s.end.Sub(s.begin).Seconds(); now.Sub(s.end) > around {
		r.End = s.end
	}
	s.begin, s.end = s.begin.Add(-fine), s.end.Add(fine)
	return true, err
}

// during selects what a device did while the job held it, both now and a step before.
func during(what string) string {
	return "(" + what + " and on (ON) kpulse_allocation_info{JOB} and on (ON) kpulse_allocation_info{JOB} offset STEP)"
}

// counter is the total of a counter: its last value, as it begins with the allocation; its increase if the proxy restarted. Several
// servers may scrape one proxy, and several pods or containers share a device.
func counter(family, label string) string {
	return strings.NewReplacer("FAMILY", "kpulse_allocation_"+family+"{JOB}[COUNTERS]", "LABEL", label).Replace("sum by (ONLABEL) (max by (ON, workload_namespace, " +
		"workload_pod, workload_container, workload_kind, workload_name, hpc_jobLABEL) ((max_over_time(FAMILY) unless resets(FAMILY) > 0) or increase(FAMILY)))")
}

// expand replaces the words in capitals of a query: JOB and UUIDS are matchers, LIFE is the range of the life of the job, COUNTERS that of
// its counters, STEP a part of it. ON are the labels of a device, BOARD those of a board.
func (s *server) expand(query string) string {
	on, life := "hostname, gpu, uuid, mig_instance", s.end.Sub(s.begin)
	if strings.Contains(query, "BOARD") {
		on = "hostname, gpu, uuid"
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.0fs", math.Ceil(d.Seconds())) }
	return strings.NewReplacer("JOB", s.job, "UUIDS", s.boards, "LIFE", seconds(life), "COUNTERS", seconds(life+2*around), "STEP", seconds(s.step),
		"ON", on, "BOARD", on).Replace(query)
}

// vector returns the result of an instant query.
func (s *server) vector(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	value, _, err := s.api.Query(ctx, s.expand(query), at)
	vector, _ := value.(model.Vector)
	return vector, unanswered(err)
}

// course returns the values of a query over time, whose result is one series; nil for none.
func (s *server) course(ctx context.Context, query string, begin, end time.Time, step time.Duration) ([]model.SamplePair, error) {
	value, _, err := s.api.QueryRange(ctx, s.expand(query), promv1.Range{Start: begin, End: end, Step: step})
	if matrix, _ := value.(model.Matrix); len(matrix) > 0 {
		return matrix[0].Values, unanswered(err)
	}
	return nil, unanswered(err)
}

// unanswered returns an error of a query with what to do.
func unanswered(err error) error {
	if err == nil {
		return nil
	}
	remedy := "see whether a Prometheus server answers there, and give its URL without /api"
	if refused, ok := errors.AsType[*promv1.Error](err); ok {
		switch {
		case strings.Contains(refused.Msg, "401") || strings.Contains(refused.Msg, "403"):
			remedy = "check the user and password, or the token, in the file of --tui.http-config"
		case refused.Type == promv1.ErrExec || refused.Type == promv1.ErrTimeout || refused.Type == promv1.ErrBadData:
			remedy = "ask when the server is less busy, or raise its limits on queries"
		}
	}
	return fmt.Errorf("--prometheus.url: %w; %s", err, remedy)
}

// held is what a server knows of a GPU of the job.
type held struct {
	account
	nvml float64
	jobGPU
}

// jobQueries are those about the devices of a job, or their boards, with what their samples are. Those of counters are asked later, when
// the last values are there.
var jobQueries = []struct {
	query string
	later time.Duration
	take  func(g *held, m model.Metric, v float64)
}{
	{counter("seconds_total", ""), around, func(g *held, _ model.Metric, v float64) { g.held = v }},
	{counter("real_utilization_seconds_total", ""), around, func(g *held, _ model.Metric, v float64) { g.utilized = v }},
	{counter("real_utilization_known_seconds_total", ""), around, func(g *held, _ model.Metric, v float64) { g.known = v }},
	{counter("energy_joules_total", ""), around, func(g *held, _ model.Metric, v float64) { g.energy = v }},
	{counter("class_seconds_total", ", class"), around, func(g *held, m model.Metric, v float64) {
		for c := range canonical.NumClasses {
			if c.String() == string(m["class"]) {
				g.classes[c] = v
			}
		}
	}},
	{"max by (ON, model) (last_over_time(kpulse_gpu_info{UUIDS}[LIFE]))", 0, func(g *held, m model.Metric, _ float64) { g.Model = diag.Text(string(m["model"])) }},
	{"max by (ON) (last_over_time(kpulse_gpu_framebuffer_total_bytes{UUIDS}[LIFE]))", 0, func(g *held, _ model.Metric, v float64) { g.Total = reading(v) }},
	{"max by (ON) (max_over_time(" + during("max_over_time(kpulse_gpu_framebuffer_used_bytes{UUIDS}[STEP])") + "[LIFE:STEP]))", 0,
		func(g *held, _ model.Metric, v float64) { g.Peak = reading(v) }},
	{"max by (ON) (avg_over_time(" + during("avg_over_time(kpulse_gpu_nvml_utilization_ratio{UUIDS}[STEP])") + "[LIFE:STEP]))", 0,
		func(g *held, _ model.Metric, v float64) { g.nvml = v }},
	{"max by (ON) (max_over_time(" + during("(kpulse_allocation_info{UUIDS} unless kpulse_allocation_info{JOB})") + "[LIFE:STEP]))", 0,
		func(g *held, _ model.Metric, _ float64) { g.Shared = true }},
	{"max by (BOARD, condition, state) (max_over_time(" + during("max_over_time(kpulse_gpu_health_condition{UUIDS}[STEP])") + "[LIFE:STEP])) == 1", 0,
		func(g *held, m model.Metric, _ float64) {
			g.Conditions = append(g.Conditions, conditionReport{string(m["condition"]), string(m["state"])})
		}},
	// A code that first came in the life of the job reads 0 for a while.
	{"max by (BOARD, xid) (increase(kpulse_gpu_xid_errors_total{UUIDS}[LIFE]) > 0 or (last_over_time(kpulse_gpu_xid_errors_total{UUIDS}[LIFE]) " +
		"unless on (BOARD, xid) last_over_time(kpulse_gpu_xid_errors_total{UUIDS}[1h] offset LIFE)))", 0, func(g *held, m model.Metric, _ float64) {
		if code, err := strconv.ParseUint(string(m["xid"]), 10, 32); err == nil {
			g.XIDs = append(g.XIDs, uint32(code))
		}
	}},
}

// readAll reads all about a job whose life is known.
func (s *server) readAll(ctx context.Context, r *JobReport) error {
	gpus, err := s.readDevices(ctx, r)
	if err != nil {
		return err
	}
	answers := make([]model.Vector, len(jobQueries))
	var courses [2][]model.SamplePair
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(queriesAtOnce)
	for i, q := range jobQueries {
		asking.Go(func() (err error) {
			answers[i], err = s.vector(ctx, q.query, s.end.Add(q.later))
			return err
		})
	}
	const mine = "(max by (ON) (%s and on (ON) kpulse_allocation_info{JOB}))"
	for i, query := range [2]string{
		fmt.Sprintf("avg"+mine, "kpulse_gpu_real_utilization_ratio{UUIDS}"),
		fmt.Sprintf("count"+mine+" / count(max by (ON) (kpulse_allocation_info{JOB}))", `kpulse_gpu_workload_class{class="idle",UUIDS} == 1`),
	} {
		asking.Go(func() (err error) {
			courses[i], err = s.course(ctx, query, s.begin, s.end, s.step)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	for i, vector := range answers {
		for _, sample := range vector {
			m := sample.Metric
			for _, g := range gpus {
				same := g.Hostname == string(m["hostname"]) && g.GPU == string(m["gpu"]) && g.UUID == string(m["uuid"])
				if same && (g.Instance == string(m["mig_instance"]) || strings.Contains(jobQueries[i].query, "BOARD")) {
					jobQueries[i].take(g, m, float64(sample.Value))
				}
			}
		}
	}
	for _, g := range gpus {
		slices.Sort(g.XIDs)
		slices.SortFunc(g.Conditions, func(a, b conditionReport) int { return cmp.Compare(a.Condition, b.Condition) })
		g.usage = g.inHours(g.nvml)
		r.GPUs = append(r.GPUs, g.jobGPU)
	}
	r.setStretches(s.dense(courses[0]), s.dense(courses[1]), s.step)
	r.finish()
	return nil
}

// readDevices reads which devices the job held, and who owns it.
func (s *server) readDevices(ctx context.Context, r *JobReport) (gpus []*held, err error) {
	const query = "group by (cluster, ON, mig_profile, workload_namespace, hpc_user, hpc_account, hpc_partition) (last_over_time(kpulse_allocation_info{JOB}[LIFE]))"
	rows, err := s.vector(ctx, query, s.end)
	clusters, namespaces, uuids, nan := map[string]bool{}, map[string]bool{}, map[string]bool{}, math.NaN()
	for _, row := range rows {
		of := func(name model.LabelName) string { return string(row.Metric[name]) }
		g := &held{account{held: nan, utilized: nan, known: nan, energy: nan}, nan, jobGPU{
			Hostname: of("hostname"), GPU: of("gpu"), UUID: of("uuid"), Instance: of("mig_instance"), Profile: of("mig_profile"), Peak: reading(nan), Total: reading(nan),
		}}
		if !slices.ContainsFunc(gpus, func(o *held) bool { return o.device() == g.device() }) {
			gpus = append(gpus, g)
		}
		clusters[of("cluster")], namespaces[of("workload_namespace")], uuids[regexp.QuoteMeta(g.UUID)] = true, true, true
		r.describe(of("workload_namespace"), of("hpc_user"), of("hpc_account"), of("hpc_partition"))
	}
	s.boards = "uuid=~" + strconv.Quote(strings.Join(slices.Sorted(maps.Keys(uuids)), "|"))
	return gpus, cmp.Or(err, severalOf(r.Job, "cluster", clusters), severalOf(r.Job, "namespace", namespaces))
}

// dense returns values by step, NaN where there are none.
func (s *server) dense(values []model.SamplePair) []float64 {
	all := slices.Repeat([]float64{math.NaN()}, int(s.end.Sub(s.begin)/s.step)+1)
	for _, v := range values {
		if i := int(v.Timestamp.Time().Sub(s.begin).Round(s.step) / s.step); i >= 0 && i < len(all) {
			all[i] = float64(v.Value)
		}
	}
	return all
}

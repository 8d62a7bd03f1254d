package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// jobPrefix begins the names of nvidia_gpu_prometheus_exporter 0.2, plazonic's fork of mindprince's,
// from which jobstats, jobscope and job_defense_shield read the GPUs of a job.
const jobPrefix = "nvidia_gpu_"

// jobNumbers are the families whose value is the number of the job that holds a GPU, and of its user: "and" with them
// selects the series of a job.
var jobNumbers = [...][2]string{
	{"nvidia_gpu_jobId", "Id of the batch system's job that holds the GPU"}, {"nvidia_gpu_jobUid", "Number of the user whose job holds the GPU"},
}

// jobRendering is what compat needs to render Jobstats. These families come from the Frame, not
// from the rows of the source: a job may be known only from outside, and the exporter writes one
// row for each device.
type jobRendering struct {
	first    int               // the index of the first such family in compat.rendered
	fields   []canonical.Field // of the families; those behind them are jobNumbers
	topology *canonical.Topology
	holders  *canonical.AllocationSet
	rows     []jobRow // of that topology and these holders
}

// jobRow is a device and a job that holds it, with its jobNumbers: NaN if there is none, or it is no number.
// Its label block has the same index in compat.blocks.
type jobRow struct {
	device  int32
	numbers [len(jobNumbers)]float64
}

// addJobFamilies adds the families of Jobstats, which are rows of the dialect, to the rendered ones.
func (c *compat) addJobFamilies() {
	c.jobs = &jobRendering{first: len(c.rendered)}
	add := func(name, help string, rule *rule) {
		header := exposition.AppendHeader(nil, name, help+renderedMark, string(canonical.Gauge))
		c.byName[name] = len(c.rendered)
		c.rendered = append(c.rendered, renderedFamily{name: name, header: string(header), version: Jobstats, rule: rule})
	}
	for _, row := range dialect {
		if name := row.Names[0]; strings.HasPrefix(name, jobPrefix) {
			c.jobs.fields = append(c.jobs.fields, row.Field)
			add(name, strings.TrimSuffix(canonical.Fields[row.Field].Help, ".")+unitWords[row.Unit], newRule(row.Field, row.Unit, 0))
		}
	}
	for _, family := range jobNumbers {
		add(family[0], family[1], newRule(0, Number, 0))
	}
}

// renderJobs adds the series of Jobstats that the source itself does not give. Readings of a board
// count for its MIG instances too, as that exporter has them.
func (t *Translator) renderJobs(dst *Rendition, frame *canonical.Frame) {
	c, j := t.compat, t.compat.jobs
	if j == nil {
		return
	}
	if j.topology != frame.Topology || j.holders != frame.AllocationSet {
		j.topology, j.holders = frame.Topology, frame.AllocationSet
		j.rows, c.blocks[Jobstats] = jobRows(frame)
		dst.blocks = c.blocks
	}
	devices := frame.Topology.Devices
	for i := j.first; i < len(c.rendered); i++ {
		if dst.begun[i] {
			continue
		}
		from := len(dst.series)
		for text, row := range j.rows {
			var v float64
			if at := i - j.first; at >= len(j.fields) {
				v = row.numbers[at-len(j.fields)]
			} else {
				of, field := int(row.device), j.fields[at]
				if canonical.Fields[field].Level == canonical.BoardLevel {
					of = devices[of].Board
				}
				v = frame.Row(of)[field]
			}
			if canonical.Given(v) {
				dst.series = append(dst.series, renderedSeries{int32(text), row.device, c.rendered[i].rule.write(v)})
			}
		}
		dst.spans[i] = span{from, len(dst.series)}
	}
}

// jobRows returns a row and a label block for each device and job that holds it, or one for a device
// without a job.
func jobRows(frame *canonical.Frame) (rows []jobRow, blocks []string) {
	devices := frame.Topology.Devices
	jobs := make([][][2]string, len(devices)) // id and number of the user
	for _, a := range frame.AllocationSet.Allocations {
		if job := [2]string{a.Job, a.UID}; a.Job != "" && !slices.Contains(jobs[a.Device], job) {
			jobs[a.Device] = append(jobs[a.Device], job)
		}
	}
	for i := range devices {
		if devices[i].Implied {
			continue
		}
		if len(jobs[i]) == 0 {
			jobs[i] = make([][2]string, 1)
		}
		for _, job := range jobs[i] {
			row := jobRow{device: int32(i)}
			for n := range row.numbers {
				var err error
				if row.numbers[n], err = strconv.ParseFloat(job[n], 64); err != nil {
					row.numbers[n] = absent
				}
			}
			rows, blocks = append(rows, row), append(blocks, jobLabels(&devices[i], job[0], job[1]))
		}
	}
	return rows, blocks
}

// jobLabels returns the label block of a device that a job of a user holds. The minor number is that of the
// device's file, such as nvidia3.
func jobLabels(d *canonical.Device, job, user string) string {
	minor, ok := strings.CutPrefix(d.Name, "nvidia")
	if !ok {
		minor = ""
	}
	name := d.Model
	if d.IsInstance() {
		name += " MIG " + d.Profile
	}
	text := []byte{'{'}
	for _, l := range [...][2]string{{"ordinal", d.GPU}, {"minor_number", minor}, {"uuid", d.UUID}, {"name", name}, {"GPU_I_ID", d.Instance}, {"jobid", job}, {"userid", user}} {
		if l[1] == "" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = exposition.AppendLabel(text, l[0], l[1])
	}
	return string(append(text, "} "...))
}

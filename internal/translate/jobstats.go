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

// jobID is the family whose value is the id of the job that holds a GPU: "and" with it selects
// the series of a job.
const jobID = "nvidia_gpu_jobId"

// jobRendering is what compat needs to render Jobstats. These families come from the Frame, not
// from the rows of the source: a job may be known only from outside, and the exporter writes one
// row for each device.
type jobRendering struct {
	first    int               // the index of the first such family in compat.rendered
	fields   []canonical.Field // of the families; that behind them is jobID
	topology *canonical.Topology
	holders  *canonical.AllocationSet
	rows     []jobRow // of that topology and these holders
}

// jobRow is a device and a job that holds it; number is NaN if there is none, or its id is no number.
// Its label block has the same index in compat.blocks.
type jobRow struct {
	device int32
	number float64
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
	add(jobID, "Id of the batch system's job that holds the GPU", newRule(0, Number, 0))
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
			v := row.number
			if at := i - j.first; at < len(j.fields) {
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
	jobs := make([][]string, len(devices))
	for _, a := range frame.AllocationSet.Allocations {
		if a.Job != "" && !slices.Contains(jobs[a.Device], a.Job) {
			jobs[a.Device] = append(jobs[a.Device], a.Job)
		}
	}
	for i := range devices {
		if devices[i].Implied {
			continue
		}
		if len(jobs[i]) == 0 {
			jobs[i] = []string{""}
		}
		for _, job := range jobs[i] {
			number, err := strconv.ParseFloat(job, 64)
			if err != nil {
				number = absent
			}
			rows, blocks = append(rows, jobRow{int32(i), number}), append(blocks, jobLabels(&devices[i], job))
		}
	}
	return rows, blocks
}

// jobLabels returns the label block of a device that a job holds. The minor number is that of the
// device's file, such as nvidia3.
func jobLabels(d *canonical.Device, job string) string {
	minor, ok := strings.CutPrefix(d.Name, "nvidia")
	if !ok {
		minor = ""
	}
	name := d.Model
	if d.IsInstance() {
		name += " MIG " + d.Profile
	}
	text := []byte{'{'}
	for _, l := range [...][2]string{{"ordinal", d.GPU}, {"minor_number", minor}, {"uuid", d.UUID}, {"name", name}, {"GPU_I_ID", d.Instance}, {"jobid", job}} {
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

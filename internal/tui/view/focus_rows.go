package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// focusRow is one line of the focus view: the title of a section, or a reading
// with its bar and its past.
type focusRow struct {
	section string // a title; the rest is not used
	metric  client.Metric
	// past is the metric whose past is drawn, MetricNone for that of metric.
	past client.Metric
	// field is what is shown of a reading that is no metric, and label its name.
	field canonical.Field
	label string
	// optional rows are left out where the device does not tell.
	optional bool
}

// focusRows are all of them, what matters most first: on a low screen the rest has
// to be scrolled to.
var focusRows = []focusRow{
	{section: "Utilization"},
	{metric: client.MetricReal},
	{metric: client.MetricNVML},
	{metric: client.MetricEngine},
	{metric: client.MetricSM},
	{metric: client.MetricOccupancy},
	{metric: client.MetricTensor},
	{section: "Memory"},
	{metric: client.MetricDRAM},
	{metric: client.MetricMemoryUsed, past: client.MetricMemory},
	{section: "Power and temperature"},
	{metric: client.MetricPower},
	{metric: client.MetricTemperature},
	{metric: client.MetricMemoryTemperature},
	{section: "Links"},
	{metric: client.MetricPCIeReceive},
	{metric: client.MetricPCIeTransmit},
	{metric: client.MetricNVLink},
	{section: "Errors"},
	{label: "Last XID", field: canonical.XIDLast},
	{label: "PCIe replays", field: canonical.PCIeReplays},
	{label: "Bad rows", field: canonical.RemappedRowsUncorrectable},
	{label: "Corrected rows", field: canonical.RemappedRowsCorrectable},
	{label: "ECC double-bit", field: canonical.ECCDoubleBitVolatile, optional: true},
	{label: "ECC single-bit", field: canonical.ECCSingleBitVolatile, optional: true},
	{section: "Pipes"},
	{metric: client.MetricFP16},
	{metric: client.MetricFP32},
	{metric: client.MetricFP64},
	{metric: client.MetricInt, optional: true},
	{metric: client.MetricHMMA, optional: true},
	{metric: client.MetricIMMA, optional: true},
	{metric: client.MetricDFMA, optional: true},
	{metric: client.MetricDMMA, optional: true},
	{metric: client.MetricQMMA, optional: true},
	{section: "Copies and media"},
	{metric: client.MetricMemCopy},
	{metric: client.MetricEncoder, optional: true},
	{metric: client.MetricDecoder, optional: true},
	{section: "Clocks and energy"},
	{metric: client.MetricSMClock},
	{metric: client.MetricMemoryClock},
	{metric: client.MetricEnergy},
}

// value returns what the row shows of g.
func (f *focusRow) value(g *client.GPU) float64 {
	if f.metric == client.MetricNone {
		return g.Values[f.field]
	}
	return client.Metrics[f.metric].Value(g)
}

// unit returns the unit of value.
func (f *focusRow) unit() canonical.Unit {
	if f.metric == client.MetricNone {
		return canonical.Fields[f.field].Unit
	}
	return client.Metrics[f.metric].Unit
}

// title returns what the row is called.
func (f *focusRow) title() string {
	if f.metric == client.MetricNone {
		return f.label
	}
	return client.Metrics[f.metric].Title
}

// rowsFor appends the rows that say something of g: without those that it does not
// tell and need not, and without sections that are empty then. Titles are left out
// where they are not wanted.
func rowsFor(dst []*focusRow, g *client.GPU, titles bool) []*focusRow {
	var section *focusRow
	for i := range focusRows {
		row := &focusRows[i]
		switch {
		case row.section != "":
			section = row
		case row.optional && !canonical.Given(row.value(g)):
		default:
			if section != nil && titles {
				dst = append(dst, section)
			}
			section = nil
			dst = append(dst, row)
		}
	}
	return dst
}

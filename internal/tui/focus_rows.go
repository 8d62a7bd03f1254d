package tui

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// focusRow is one line of the focus view: the title of a section, or a reading
// with its bar and its past.
type focusRow struct {
	section string // a title; the rest is not used
	metric  Metric
	// past is the metric whose past is drawn, MetricNone for that of metric.
	past Metric
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
	{metric: MetricReal},
	{metric: MetricNVML},
	{metric: MetricEngine},
	{metric: MetricSM},
	{metric: MetricOccupancy},
	{metric: MetricTensor},
	{section: "Memory"},
	{metric: MetricDRAM},
	{metric: MetricMemoryUsed, past: MetricMemory},
	{section: "Power and temperature"},
	{metric: MetricPower},
	{metric: MetricTemperature},
	{metric: MetricMemoryTemperature},
	{section: "Links"},
	{metric: MetricPCIeReceive},
	{metric: MetricPCIeTransmit},
	{metric: MetricNVLink},
	{section: "Errors"},
	{label: "Last XID", field: canonical.XIDLast},
	{label: "PCIe replays", field: canonical.PCIeReplays},
	{label: "Bad rows", field: canonical.RemappedRowsUncorrectable},
	{label: "Corrected rows", field: canonical.RemappedRowsCorrectable},
	{label: "ECC double-bit", field: canonical.ECCDoubleBitVolatile, optional: true},
	{label: "ECC single-bit", field: canonical.ECCSingleBitVolatile, optional: true},
	{section: "Pipes"},
	{metric: MetricFP16},
	{metric: MetricFP32},
	{metric: MetricFP64},
	{metric: MetricInt, optional: true},
	{metric: MetricHMMA, optional: true},
	{metric: MetricIMMA, optional: true},
	{metric: MetricDFMA, optional: true},
	{metric: MetricDMMA, optional: true},
	{metric: MetricQMMA, optional: true},
	{section: "Copies and media"},
	{metric: MetricMemCopy},
	{metric: MetricEncoder, optional: true},
	{metric: MetricDecoder, optional: true},
	{section: "Clocks and energy"},
	{metric: MetricSMClock},
	{metric: MetricMemoryClock},
	{metric: MetricEnergy},
}

// value returns what the row shows of g.
func (f *focusRow) value(g *GPU) float64 {
	if f.metric == MetricNone {
		return g.Values[f.field]
	}
	return Metrics[f.metric].Value(g)
}

// unit returns the unit of value.
func (f *focusRow) unit() canonical.Unit {
	if f.metric == MetricNone {
		return canonical.Fields[f.field].Unit
	}
	return Metrics[f.metric].Unit
}

// title returns what the row is called.
func (f *focusRow) title() string {
	if f.metric == MetricNone {
		return f.label
	}
	return Metrics[f.metric].Title
}

// rowsFor appends the rows that say something of g: without those that it does not
// tell and need not, and without sections that are empty then. Titles are left out
// where they are not wanted.
func rowsFor(dst []*focusRow, g *GPU, titles bool) []*focusRow {
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

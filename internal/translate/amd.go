package translate

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// AMD's device-metrics-exporter (github.com/ROCm/device-metrics-exporter, docs/configuration/metricslist.md, 1.5).
// Its MB are MiB. Left out are families that add up over a time that the exporter does not say (data of links, violations,
// memory fetched), sums of both directions (pcie_bandwidth), values of each core or stack, and the exporter's own verdicts.

// cardName returns the name of a family without the prefix that the config file of that exporter may set; AMD's operator sets amd_.
func cardName(name string) string {
	return name[max(strings.LastIndex(name, "gpu_"), strings.LastIndex(name, "pcie_"), 0):]
}

// cardRows are the families that a name and a unit describe.
var cardRows = []Row{
	{canonical.SMActive, Percent, false, "", []string{"gpu_prof_sm_active"}},
	{canonical.SMOccupancy, Percent, false, "", []string{"gpu_prof_occupancy_percent"}},
	{canonical.TensorActive, Percent, false, "", []string{"gpu_prof_tensor_active_percent"}},
	{canonical.GraphicsEngineActive, Percent, false, "", []string{"gpu_prof_gui_util_percent"}},
	{canonical.NVMLUtilization, Percent, false, "", []string{"gpu_gfx_activity"}},
	{canonical.MemoryCopyUtilization, Percent, false, "", []string{"gpu_umc_activity"}},
	{canonical.Power, Watts, false, "", []string{"gpu_package_power", "gpu_average_package_power", "gpu_power_usage"}}, // MI3xx; MI2xx and Radeon; both
	{canonical.Energy, Microjoules, false, "", []string{"gpu_energy_consumed"}},
	{canonical.Temperature, Celsius, false, "", []string{"gpu_junction_temperature", "gpu_edge_temperature"}}, // MI3xx; MI2xx
	{canonical.MemoryTemperature, Celsius, false, "", []string{"gpu_memory_temperature"}},
	{canonical.FramebufferTotal, MiB, false, "", []string{"gpu_total_vram"}},
	{canonical.FramebufferUsed, MiB, false, "", []string{"gpu_used_vram"}},
	{canonical.FramebufferFree, MiB, false, "", []string{"gpu_free_vram"}},
	{canonical.PCIeReplays, Number, false, "", []string{"pcie_replay_count"}},
	{canonical.ECCSingleBitVolatile, Number, false, "", []string{"gpu_ecc_correct_total"}},
	{canonical.ECCDoubleBitVolatile, Number, false, "", []string{"gpu_ecc_uncorrect_total"}},
	// Errors of the links between GPUs, by whether ECC corrected them.
	{canonical.NVLinkCRCDataErrors, Number, false, "", []string{"gpu_ecc_correct_xgmi_wafl"}},
	{canonical.NVLinkReceiveErrors, Number, false, "", []string{"gpu_ecc_uncorrect_xgmi_wafl"}},
}

// cardFamily is a family whose samples say more than a number in a unit.
type cardFamily struct {
	field canonical.Field
	// value returns the reading for a number, absent for none; was is the reading of earlier samples, NaN without any.
	value func(n, was float64) float64
	clock bool // the label clock_type names the field
}

// cardFamilies are these families, by name.
var cardFamilies = map[string]cardFamily{
	"gpu_clock": {value: firstMegahertz, clock: true},
	// Of each stack, on MI2xx.
	"gpu_hbm_temperature": {field: canonical.MemoryTemperature, value: highest},
	// Later names of cardRows, for boards that have 0 under an earlier one.
	"gpu_junction_temperature": {field: canonical.Temperature, value: firstAboveZero},
	"gpu_package_power":        {field: canonical.Power, value: firstAboveZero},
	"gpu_power_usage":          {field: canonical.Power, value: firstAboveZero},
	"pcie_speed":               {field: canonical.PCIeLinkGeneration, value: generationOf},
	"pcie_max_speed":           {field: canonical.PCIeLinkGenerationMax, value: generationOf},
	// Shares of the time since the exporter's last look. The bits are those of canonical.ClockEventReasons.
	"gpu_violation_ppt_residency_percentage":            {field: canonical.ClockEvents, value: held(0x4)},
	"gpu_violation_socket_thermal_residency_percentage": {field: canonical.ClockEvents, value: held(0x40)},
	"gpu_violation_vr_thermal_residency_percentage":     {field: canonical.ClockEvents, value: held(0x40)},
	"gpu_violation_hbm_thermal_residency_percentage":    {field: canonical.ClockEvents, value: held(0x40)},
	"gpu_violation_processor_hot_residency_percentage":  {field: canonical.ClockEvents, value: held(0x40)},
}

// firstMegahertz returns the clock of the first sample: boards of several dies have one for each.
func firstMegahertz(n, was float64) float64 {
	if canonical.Given(was) {
		return was
	}
	return n * 1e6
}

// highest returns the highest of several readings above 0.
func highest(n, was float64) float64 {
	if was > n || n == 0 {
		return was
	}
	return n
}

// firstAboveZero returns the first reading above 0, as a board has 0 for sensors that it lacks (ROCm/device-metrics-exporter#557).
func firstAboveZero(n, was float64) float64 {
	if was > 0 {
		return was
	}
	return n
}

// generationOf returns the generation of a PCIe link from its speed in whole GT/s: the exporter cuts 2.5 to 2.
func generationOf(speed, _ float64) float64 {
	if i := slices.Index([]float64{2, 5, 8, 16, 32, 64}, math.Floor(speed)); i >= 0 {
		return float64(i + 1)
	}
	return absent
}

// held returns a function that adds a bit to the earlier ones if a share of time is above 0.
func held(bit uint64) func(share, was float64) float64 {
	return func(share, was float64) float64 {
		if !canonical.Given(was) {
			was = 0
		}
		if share > 0 {
			return float64(uint64(was) | bit)
		}
		return was
	}
}

// clockTypes are the clocks that we serve, by the label clock_type, which earlier had a prefix and capitals.
var clockTypes = map[string]canonical.Field{"system": canonical.SMClock, "memory": canonical.MemoryClock}

// cards is what a page of AMD's exporter needs besides rules.
type cards struct {
	read     bool                  // the source has families of that exporter
	families map[uint32]cardFamily // by id
	clocks   []canonical.Field     // by label block, NumFields for none
}

// learnFamily notes a family.
func (c *cards) learnFamily(id uint32, name string) {
	name = cardName(name)
	c.read = c.read || slices.ContainsFunc(cardRows, func(r Row) bool { return slices.Contains(r.Names, name) })
	if f, is := cardFamilies[name]; is {
		c.families[id] = f
	}
}

// learnBlock notes the clock of the next label block.
func (c *cards) learnBlock(labels []raw.Label) {
	clock := canonical.NumFields
	if i := slices.IndexFunc(labels, func(l raw.Label) bool { return l.Name == "clock_type" }); i >= 0 {
		if f, is := clockTypes[strings.ToLower(strings.TrimPrefix(labels[i].Value, "GPU_CLOCK_TYPE_"))]; is {
			clock = f
		}
	}
	c.clocks = append(c.clocks, clock)
}

// fillCards adds the readings of cardFamilies. What fill counted is not counted again.
func (t *Translator) fillCards(dst *canonical.Frame, b *raw.Batch, rep *Report) {
	if !t.cards.read {
		return
	}
	stamps := b.Stamps
	for i := range b.Samples {
		s, stale := &b.Samples[i], false
		if len(stamps) > 0 && stamps[0].Sample == i {
			stale, stamps = isStale(stamps[0].Millis, b.At), stamps[1:]
		}
		f, is := t.cards.families[s.Family]
		v := t.blocks[s.Labels]
		if !is || v < 0 || t.positions[v].row < 0 || !isCard(&t.variants[v].Device) {
			continue
		}
		if f.clock {
			f.field = t.cards.clocks[s.Labels]
		}
		if f.field == canonical.NumFields {
			continue
		}
		cell := dst.Cell(int(t.positions[v].row), f.field)
		reading := f.value(s.Value, *cell)
		switch _, highest := canonical.Fields[f.field].Range(); {
		case !stale && s.Value-s.Value == 0 && s.Value >= 0 && !(reading > highest): // NaN is absent
			*cell = reading
		case t.families[s.Family].rule != nil:
		case stale:
			rep.Dropped[canonical.DropStale]++
		default:
			rep.Dropped[canonical.DropOutOfRange]++
		}
	}
	correctCards(dst)
}

// isCard reports whether asCard named a device: a page may have NVIDIA's beside them.
func isCard(d *canonical.Device) bool { return strings.Contains(d.Model, "AMD") }

// correctCards takes back what rows of that exporter say without having read it: SM activity and occupancy of Radeon boards are always 0,
// the first partition of a board has the activity of the whole board, and sensors that guests and partitions lack read 0. The activity
// of the memory controller stands in for that of the memory: there is no better one.
func correctCards(dst *canonical.Frame) {
	for i, d := range dst.Topology.Devices {
		row := dst.Row(i)
		if !isCard(&d) {
			continue
		}
		if d.IsInstance() || row[canonical.FramebufferUsed] > 0 || !isBlankRow(row) {
			for _, f := range signsOfLife {
				if row[f] == 0 {
					row[f] = absent
				}
			}
		}
		switch {
		case d.IsInstance():
			row[canonical.NVMLUtilization], row[canonical.MemoryCopyUtilization] = absent, absent
		case !canonical.Given(row[canonical.DRAMActive]):
			row[canonical.DRAMActive] = row[canonical.MemoryCopyUtilization]
		}
		if strings.Contains(d.Model, "Radeon") {
			row[canonical.SMActive], row[canonical.SMOccupancy] = absent, absent
		}
	}
}

// ConfigFields returns what gives missing readings in the config file of AMD's exporter, nil for other sources.
func (t *Translator) ConfigFields(missing []canonical.Field) []string {
	if !t.cards.read || t.vendor {
		return nil
	}
	lines, names := []string{}, ""
	for _, row := range cardRows {
		if slices.Contains(missing, row.Field) {
			names += ", " + strconv.Quote(strings.ToUpper(row.Names[0]))
		}
	}
	if strings.Contains(names, "GPU_PROF_") {
		lines = append(lines, `"GPUConfig": {"ProfilerMetrics": {"all": true}}`)
	}
	if names != "" {
		lines = append(lines, `only if GPUConfig has a list "Fields", which leaves out what it does not name, there: `+names[len(", "):])
	}
	return lines
}

// asCard turns the labels of a row of AMD's exporter into those of the vendor's. The identity of a board is its UUID or its serial number,
// which guests lack; partitions of a board have UUIDs of their own, and share the serial number. On rows of other exporters,
// such labels are a pod's.
func (v *values) asCard() {
	card := *v
	for r := roleCard; r <= roleCardPartition; r++ {
		v[r] = ""
	}
	mode := strings.ToLower(card[roleCardMode])
	if card[roleGPU] != "" || card[roleCard] == "" || mode == "" {
		return
	}
	if strings.Trim(v[roleUUID], "0-") == "" {
		v[roleUUID] = ""
	}
	v[roleUUID] = cmp.Or(v[roleUUID], card[roleCardSerial], card[roleHostname]+"/"+card[roleCard])
	if part := card[roleCardPart]; card[roleCardSerial] != "" && part != "NA" && slices.Contains([]string{"dpx", "tpx", "qpx", "cpx"}, mode) {
		v[roleUUID], v[roleInstance], v[roleProfile] = card[roleCardSerial], part, mode
	}
	model := cmp.Or(card[roleCardSeries], card[roleCardModel])
	if !strings.Contains(model, "AMD") {
		model = strings.TrimSpace("AMD " + model) // as NVIDIA's models begin, so that a fleet of both tells them apart
	}
	v[roleGPU], v[roleModel], v[roleDriver] = card[roleCard], model, card[roleCardDriver]
	v[roleHPCJob], v[roleCardUser], v[roleCardPartition] = card[roleCardJob], card[roleCardUser], card[roleCardPartition]
}

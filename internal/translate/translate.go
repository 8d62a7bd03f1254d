package translate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Options configure a Translator.
type Options struct {
	// NodeName is the hostname of every device; "" leaves it to their labels.
	NodeName string
	// FallbackHost is the hostname of devices whose labels give none: the host
	// of the source's URL, or this machine.
	FallbackHost string
	// MaxLabelValue is the longest value, in bytes, of a label that describes a device or its
	// holder. Samples with a longer one are left out. 0 is no bound.
	MaxLabelValue int
	// MaxDevices bounds the number of devices of a frame,
	// including boards known only from their instances. The newest devices beyond it
	// get no row. 0 is no bound.
	MaxDevices int
	// MaxAllocations bounds the number of allocations of
	// a frame. The newest beyond it are left out of its AllocationSet and counted. 0 is
	// no bound.
	MaxAllocations int
	// Rows are the user's additions to the dialect.
	Rows []Row
	// Compat lists the versions that Render renders. If two have the same name for a family, it
	// is rendered as in the first.
	Compat []Version
	// CompatAll is set if nothing of the source itself is served. Render then leaves
	// nothing out.
	CompatAll bool
}

// Translator turns the Batches of one source into Frames. It remembers what the
// ids of the source's Dict mean, so that a reading of known series costs one
// array write for each sample and allocates nothing. It belongs to the goroutine
// that reads the source.
type Translator struct {
	opts       Options
	rules      *ruleSet
	boardLevel []canonical.Field
	util       utilRatio
	compat     *compat // nil without Options.Compat

	learned
	arrangement
	pass
	cliques cliques
	links   linkStates
	cards   cards
	xids    xidReports
	labels  []raw.Label // scratch
}

// learned is what is known about the ids of dict at its generation.
type learned struct {
	dict       *raw.Dict
	generation uint64
	families   []family
	vendor     bool            // the source has families of the vendor's own exporter
	blocks     []int32         // the variant of each, or noDevice or longLabel
	long       *canonical.Note // about a label longer than allowed, nil if there was none
	variants   []variant
	variantID  map[variant]int32
	positions  []position // of each variant
	unknown    []string   // the unknown families of the latest reading
}

// arrangement is the devices of the latest topology, and who holds them.
type arrangement struct {
	topology      *canonical.Topology
	allocations   []holding // in the order in which they appeared
	allocationSet *canonical.AllocationSet
	relabelled    bool  // Prometheus renamed the pod of a row of the topology
	containers    []int // of the pod of each allocation in allocationSet, if a position is shared
}

// pass is one pass over a batch.
type pass struct {
	// reading numbers the passes, so that marks of earlier passes need not be cleared.
	reading        uint64
	fallbackValues []float64      // devices × rules.fallbacks
	later          []sharedSample // in their order
	utilRatios     []float64      // of each allocation, as utilRatioName gives it
}

// family is the state of a family id.
type family struct {
	rule    *rule // nil if we have no name for it
	unknown bool  // it is the vendor's and has no rule
	sibling bool  // it came with the base-unit fields of DCGM 4.7
	naming  bool  // it names devices without showing them: see isNaming
	lost    bool  // it is lostFamily
	clique  bool  // it is cliqueFamily
	xid     bool  // it counts XIDs, for witness
	witness canonical.Witness
	seen    bool // a device has a sample of it in this reading
	listed  bool // it is in Translator.unknown
}

// position is where the samples of a variant go.
type position struct {
	row  int32  // index in the topology, or notHere, overLimit or named
	seen uint64 // the last reading that had a sample of it
	// shared is set if the variant is of a workload and its device also has rows of
	// others; allocation is its index in the allocationSet, or -1.
	shared     bool
	allocation int32
}

const (
	notHere   = -1 // the variant was not in the reading that made the topology
	overLimit = -2 // its device is beyond Options.MaxDevices
	named     = -3 // that reading only had samples of it that name its device: see isNaming
)

// New returns a Translator. Errors are about Options.Rows; they name the row and
// the remedy.
func New(opts Options) (*Translator, error) {
	rules, err := builtIn()
	if len(opts.Rows) > 0 {
		rules, err = newRuleSet(opts.Rows)
	}
	if err != nil {
		return nil, err
	}
	opts.MaxLabelValue, opts.MaxDevices, opts.MaxAllocations = max(opts.MaxLabelValue, 0), max(opts.MaxDevices, 0), max(opts.MaxAllocations, 0)
	t := &Translator{opts: opts, rules: rules, util: newUtilRatio(), compat: newCompat(&opts, rules.quantities)}
	t.topology = &canonical.Topology{Hostname: cmp.Or(opts.NodeName, opts.FallbackHost)}
	t.allocationSet = &canonical.AllocationSet{}
	for f := range canonical.NumFields {
		if canonical.Fields[f].Level == canonical.BoardLevel {
			t.boardLevel = append(t.boardLevel, f)
		}
	}
	return t, nil
}

// Translate fills dst with the devices and readings of b, and rep with what became of the
// rest. A device is in dst if a sample of b shows it or an instance of it; a board that b
// only names is in Topology.Absent. Of several samples for one reading of a device the first
// counts; otherwise the order of samples does not matter. While no device comes, goes or
// changes, dst.Topology stays the same. While no workload comes or goes either,
// dst.AllocationSet stays the same.
func (t *Translator) Translate(dst *canonical.Frame, b *raw.Batch, rep *Report) {
	var leftOut uint64
	if t.learn(b.Dict) || !t.fill(dst, b, rep) {
		leftOut = t.rearrange(b)
		t.fill(dst, b, rep)
	}
	dst.At = b.At
	dst.AllocationSet = t.allocationSet
	rep.DroppedAllocations = leftOut
	t.countLinks(dst, b)
	t.fillCards(dst, b, rep)
	t.countXIDs(dst, b, rep)
	t.resolveUtil(dst, b.Dict, rep)
	t.derive(dst, rep)
	t.resolveUses(dst)
	rep.UnknownFamilies = t.listUnknown(b.Dict)
}

// learn adds the families and label blocks that are new in d since the last reading. If ids have
// another meaning, it forgets what they meant and returns true: the devices of the topology no
// longer have ids.
func (t *Translator) learn(d *raw.Dict) (anew bool) {
	if anew = t.dict != d || t.generation != d.Generation(); anew {
		t.learned = learned{dict: d, generation: d.Generation(), variantID: map[variant]int32{}}
		t.util.family = -1
		t.links, t.cards = linkStates{}, cards{families: map[uint32]cardFamily{}}
		t.xids.forget()
		t.compat.forget()
	}
	for id := len(t.families); id < d.Families(); id++ {
		name, help := d.Family(uint32(id)).Name, d.Family(uint32(id)).Help
		r := t.rules.byName[name]
		if r == nil && !isVendorName(name) {
			r = t.rules.byName[cardName(name)]
		}
		t.vendor = t.vendor || isVendorName(name)
		t.families = append(t.families, family{
			rule: r, unknown: r == nil && isVendorName(name) && !isKnownCounted(name) && !isCliqueFamily(name), clique: isCliqueFamily(name),
			sibling: isSibling(name) && !strings.HasSuffix(help, renderedMark), naming: r == nil && isNaming(name), lost: name == lostFamily,
		})
		t.links.learn(uint32(id), name)
		t.cards.learnFamily(uint32(id), name)
		t.families[id].witness, t.families[id].xid = witnessOf(name)
		if name == utilRatioName {
			t.util.family = id
		}
		t.compat.learnFamily(name, r)
	}
	for id := len(t.blocks); id < d.Blocks(); id++ {
		t.blocks = append(t.blocks, t.resolve(d, uint32(id)))
		t.cards.learnBlock(t.labels)
		t.compat.learnBlock(t.labels, t.blocks[id] >= 0)
	}
	return anew
}

// fill writes the samples of b to dst. It returns false if the devices of b are not those
// of the topology, or their allocations not those of the allocationSet.
func (t *Translator) fill(dst *canonical.Frame, b *raw.Batch, rep *Report) bool {
	*rep = Report{}
	t.begin(dst)
	stamps := b.Stamps
	for i := range b.Samples {
		stale := false
		if len(stamps) > 0 && stamps[0].Sample == i {
			stale = isStale(stamps[0].Millis, b.At)
			stamps = stamps[1:]
		}
		s := &b.Samples[i]
		v := t.blocks[s.Labels]
		if v < 0 {
			if v == longLabel && t.families[s.Family].rule != nil {
				rep.Dropped[canonical.DropLabelTooLong]++
				rep.LongLabel = t.long
			}
			continue
		}
		f, p := &t.families[s.Family], &t.positions[v]
		if f.naming {
			if f.seen = true; !t.seeNamed(p) {
				return false
			}
			t.xids.note(f, i, stale, rep)
			continue
		}
		p.seen = t.reading
		if p.row == overLimit {
			rep.DroppedSeries++
			continue
		}
		if p.row < 0 {
			return false
		}
		f.seen = true
		if f.clique && !t.cliques.agree(int(p.row), s.Value) {
			return false
		}
		if f.rule == nil {
			continue
		}
		if p.shared && !stale {
			t.later = append(t.later, sharedSample{sample: int32(i), variant: v})
			continue
		}
		cell := t.cell(dst, int(p.row), f.rule.slot)
		switch {
		case p.shared:
			rep.Dropped[canonical.DropStale]++
		case !isUntouched(*cell):
		case stale:
			rep.Dropped[canonical.DropStale]++
			*cell = absent
		default:
			*cell = f.rule.read(s.Value, rep)
		}
	}
	t.fillShared(dst, b, rep)
	return t.cliques.whole() && t.allSeen()
}

// begin prepares for the samples of a reading.
func (t *Translator) begin(dst *canonical.Frame) {
	t.reading++
	dst.Shape(t.topology)
	t.shapeFallbacks()
	t.shapeUses(dst)
	t.cliques.seen, t.xids.samples = 0, t.xids.samples[:0]
}

// seeNamed notes a row that only names its device. It returns false if the topology was made
// without that row.
func (t *Translator) seeNamed(p *position) bool {
	if p.row == named {
		p.seen = t.reading
	}
	return p.row != notHere
}

// maxStampAge is how far a sample's own timestamp may be from the time of the reading. It
// is Prometheus' lookback: Prometheus ignores older samples too.
const maxStampAge = 5 * time.Minute

// isStale reports whether a sample with that timestamp, in milliseconds since 1970,
// is too old or too new for a reading at that time.
func isStale(millis int64, at time.Time) bool {
	return !at.IsZero() && at.Sub(time.UnixMilli(millis)).Abs() > maxStampAge
}

// cell returns the cell of a device for the slot of a rule.
func (t *Translator) cell(dst *canonical.Frame, row, slot int) *float64 {
	if slot < int(canonical.NumFields) {
		return dst.Cell(row, canonical.Field(slot))
	}
	return &t.fallbackValues[row*len(t.rules.fallbacks)+slot-int(canonical.NumFields)]
}

// shapeFallbacks makes every fallback cell of the topology's devices untouched.
func (t *Translator) shapeFallbacks() {
	n := len(t.topology.Devices) * len(t.rules.fallbacks)
	t.fallbackValues = slices.Grow(t.fallbackValues[:0], n)[:n]
	for i := range t.fallbackValues {
		t.fallbackValues[i] = math.NaN()
	}
}

// allSeen reports whether every variant that the topology and the allocationSet were made
// from is in this reading too.
func (t *Translator) allSeen() bool {
	for i := range t.positions {
		if row := t.positions[i].row; (row >= 0 || row == named) && t.positions[i].seen != t.reading {
			return false
		}
	}
	return true
}

// rearrange makes the topology from the devices in b and the allocationSet from their
// holders, and sets the position of every variant. It returns how many allocations are
// newly left out.
func (t *Translator) rearrange(b *raw.Batch) (leftOut uint64) {
	present, naming, lost := t.present(b)
	devices := withBoards(gather(t.variants, present))
	devices = admit(devices, t.topology.Devices, t.opts.MaxDevices)
	arrange(devices, t.opts.FallbackHost)
	index := indexOf(devices)
	for i := range t.positions {
		t.positions[i].row = notHere
	}
	for _, v := range present {
		t.positions[v].row = overLimit
		if at, ok := index[keyOf(&t.variants[v].Device)]; ok {
			t.positions[v].row = int32(at)
		}
	}
	for _, v := range naming {
		t.positions[v].row = named
	}
	t.readCliques(devices, b)
	absent, isLost := t.absent(naming, lost, devices)
	heldOnly := len(present) > 0 && !slices.ContainsFunc(present, func(v int32) bool { return !t.variants[v].virtual })
	if !slices.Equal(devices, t.topology.Devices) || !slices.Equal(absent, t.topology.Absent) || !slices.Equal(isLost, t.topology.Lost) || heldOnly != t.topology.HeldOnly {
		t.topology = &canonical.Topology{
			Devices:    devices,
			Absent:     absent,
			Lost:       isLost,
			HeldOnly:   heldOnly,
			Hostname:   t.hostname(devices),
			Generation: t.topology.Generation + 1,
		}
		t.allocationSet = nil
	}
	t.relabelled = slices.ContainsFunc(present, func(v int32) bool { return t.variants[v].exported })
	leftOut = t.updateAllocations(present)
	t.countContainers(t.markShared(present))
	return leftOut
}

// hostname returns the node's hostname. It follows from the devices and the options, so it
// changes only if the devices do.
func (t *Translator) hostname(devices []canonical.Device) string {
	if len(devices) == 0 {
		return cmp.Or(t.opts.NodeName, t.opts.FallbackHost)
	}
	return devices[0].Hostname
}

// present returns the variants with a sample in b that shows their device, and those with
// samples that only name it, each in the order of their first samples; and those of the boards
// that the source calls lost.
func (t *Translator) present(b *raw.Batch) (showing, naming, lost []int32) {
	t.reading++
	for _, names := range [...]bool{false, true} {
		for i := range b.Samples {
			s := &b.Samples[i]
			v := t.blocks[s.Labels]
			if names && v >= 0 && t.families[s.Family].lost && !t.variants[v].silent {
				lost = append(lost, v)
			}
			if v < 0 || t.families[s.Family].naming != names || t.positions[v].seen == t.reading {
				continue
			}
			t.positions[v].seen = t.reading
			if names {
				naming = append(naming, v)
			} else {
				showing = append(showing, v)
			}
		}
	}
	return showing, naming, lost
}

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// story is a random history of one exporter: boards that disappear, return and are repartitioned,
// workloads that come, go and share, XIDs, counters that rise and restart, and blanks.
type story struct {
	*author
	boards   []*storyBoard
	said     int    // workloads so far
	counts   bool   // counts XIDs, like exporters since 4.8.3
	measures bool   // measures what workloads use, like exporters with virtual GPUs
	pods     string // format of workload labels
	states   bool   // reports states of links
}

// storyBoard is a board and its readings, by field name.
type storyBoard struct {
	index   int
	labels  string
	away    bool
	noRow   bool // no row of its own
	texts   map[string]string
	parts   []*storyPart // the first one is the board itself
	energy  float64      // in millijoules
	stuck   bool         // its energy counter stands still
	mute    bool         // its energy is blank
	xids    map[int]int
	suspect int // percentage of readings in which a program fails on it
	links   int
}

// storyPart is a board or one of its instances, and its holders.
type storyPart struct {
	labels string
	texts  map[string]string
	holder []string
}

// numbers are the possible values of a kind; ordinary ones are listed several times.
var numbers = map[string][]string{
	"watts":       {"76.421000", "412.500000", "0.000000", "700", "140737488355328.000000", "NaN", "-1"},
	"megahertz":   {"1980", "345", "0", "2147483633", "9223372036854775794"},
	"hertz":       {"1.98e+09", "3.45e+08", "0", "2147483633", "9223372036854775794"},
	"mebibytes":   {"0", "1024", "40000", "81559", "2147483632", "9223372036854775794"},
	"bytes":       {"0", "1073741824", "4.2e+10", "8.5520809984e+10", "2147483632", "9223372036854775794"},
	"nanoseconds": {"0", "123456789", "5000000000", "2147483632", "9223372036854775794"},
	"seconds":     {"0", "0.123456789", "5", "140737488355328", "NaN"},
	"nvlink":      {"0", "244", "100000.5", "140737488355329.000000"},
	"rate":        {"0", "17544", "5e8", "999999999", "1000000000", "140737488355328", "-5"},
	"percent":     {"0", "3", "20", "41", "87", "100", "101", "2147483632", "9223372036854775794"},
	"fraction":    {"0", "0.25", "0.999", "1", "1.05", "1.2", "NaN"},
	"celsius":     {"35", "35", "35", "61", "91", "93", "95", "96", "200", "201", "-20", "82505", "9223372036854775794"},
	"sensor":      {"0", "40", "40", "92", "95", "201", "2147483634"},
	"count":       {"0", "0", "0", "0", "0", "0", "0", "0", "1", "2", "2147483635", "9223372036854775794", "-1", "NaN"},
}

// special are the possible values of some fields.
var special = map[string][]string{
	"board_clock_bits": {"0", "0", "1", "4", "32", "64", "96", "128", "160", "256", "9223372036854775794"},
	"board_margin":     {"30", "12", "1", "0", "-3", "9223372036854775794"},
	"board_recovery":   {"0", "0", "0", "0", "0", "1", "2", "3", "4", "9223372036854775794"},
	"board_fabric":     {"0", "1", "1", "1", "2", "3", "9223372036854775794"},
}

func (a *author) tell() *story {
	s := &story{author: a, counts: a.chance(50), measures: a.chance(25), states: a.chance(40)}
	s.dialect = pick(a, dialects...)
	s.pods = pick(a, `namespace=%q,pod=%q,container=%q`, `namespace=%q,pod=%q,container=%q`, `exported_namespace=%q,exported_pod=%q,exported_container=%q`)
	if s.dialect.spelling == 2 {
		s.pods, s.measures = `pod_namespace=%q,pod_name=%q,container_name=%q`, false
	}
	a.bodies++
	for i := range 1 + a.rng.IntN(4) {
		b := &storyBoard{index: i, texts: map[string]string{}, xids: map[int]int{}, energy: 1e6 * float64(a.rng.IntN(1000)), suspect: pick(a, 0, 0, 0, 5, 40, 80), links: 18}
		b.labels = fmt.Sprintf(`gpu="%d",%s="GPU-%08x-%04x",pci_bus_id="00000000:%02X:00.0",device="nvidia%d"`, i, a.dialect.uuid, a.bodies, i, 16+i, i)
		if model := pick(a, "", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Quadro RTX 6000"); model != "" {
			b.labels += fmt.Sprintf(`,modelName=%q`, model)
		}
		b.parts = []*storyPart{{texts: map[string]string{}}}
		s.boards = append(s.boards, b)
	}
	return s
}

// gap returns the time until the next reading.
func (s *story) gap() time.Duration {
	const sec = time.Second
	return pick(s.author, sec, 5*sec, 15*sec, 15*sec, 15*sec, 15*sec, 15*sec, 15*sec, 30*sec, time.Minute, time.Minute, 4*time.Minute, 6*time.Minute, 11*time.Minute, 61*time.Minute)
}

// page advances the story and returns the exporter's page.
func (s *story) page() []byte {
	s.lines = s.lines[:0]
	for _, b := range s.boards {
		s.happen(b)
		if !b.away {
			s.write(b)
		}
	}
	s.lines = append(s.lines, "go_goroutines 7\n")
	s.clutter()
	return s.shuffled()
}

// happen changes a board at random.
func (s *story) happen(b *storyBoard) {
	switch {
	case s.chance(6):
		b.away = !b.away
	case s.chance(4):
		s.cut(b)
	}
	s.spend(b)
	if s.chance(8) {
		s.xid(b)
	}
	if s.chance(b.suspect) {
		s.came(b, pick(s.author, 13, 13, 13, 31))
	}
	if s.chance(4) {
		b.links = 14 + s.rng.IntN(5)
	}
	for _, p := range b.parts {
		if s.chance(12) {
			s.rent(p)
		}
		if s.chance(25) {
			for _, r := range s.activityFields(true) {
				p.texts[r.field] = r.text
			}
		}
	}
	s.change(b)
}

// change changes some values of a board and its parts.
func (s *story) change(b *storyBoard) {
	calm := len(b.texts) > 0
	for i := range spellings {
		sp := &spellings[i]
		if known, _ := s.spelled(sp.field); known != sp || calm && !s.chance(4) {
			continue
		}
		texts := special[sp.field]
		if texts == nil {
			texts = numbers[sp.kind]
		}
		switch {
		case sp.field == "board_xid" || sp.field == "board_energy" || texts == nil:
		case sp.isBoards():
			b.texts[sp.field] = pick(s.author, texts...)
		case !slices.Contains([]string{"fraction", "undecided"}, sp.kind) || sp.field == "encoder" || sp.field == "decoder":
			for _, p := range b.parts {
				p.texts[sp.field] = pick(s.author, texts...)
			}
		}
	}
}

// spend advances the energy counter: it may stand still, restart, fall by its rounding, or rise by
// more than any board uses.
func (s *story) spend(b *storyBoard) {
	if s.chance(8) {
		b.stuck = !b.stuck
	}
	if s.chance(5) {
		b.mute = !b.mute
	}
	switch {
	case s.chance(2):
		b.energy = 0
	case s.chance(5):
		b.energy = max(0, b.energy-pick(s.author, 500.0, 1000, 2000, 1e5))
	case s.chance(1):
		b.energy += 1e13
	case !b.stuck:
		b.energy += 1e5 * float64(s.rng.IntN(90))
	}
}

// xid gives a board an XID: a new one, the same again, or none.
func (s *story) xid(b *storyBoard) {
	s.came(b, pick(s.author, 0, 13, 31, 43, 45, 48, 63, 64, 74, 78, 79, 94, 95, 119, 140, 151, 154, 54, 999))
	if s.chance(5) {
		b.texts["board_xid"] = "9223372036854775794"
	}
}

// came reports a code on a board.
func (s *story) came(b *storyBoard, code int) {
	if b.texts["board_xid"] = strconv.Itoa(code); code > 0 {
		b.xids[code] += 1 + s.rng.IntN(2)
	}
}

// cut repartitions a board, possibly into no instances.
func (s *story) cut(b *storyBoard) {
	b.parts, b.noRow = b.parts[:1], false
	for i := range s.rng.IntN(4) {
		profile := pick(s.author, "1g.10gb", "3g.40gb")
		b.parts = append(b.parts, &storyPart{labels: fmt.Sprintf(`,GPU_I_PROFILE="%s",GPU_I_ID="%d"`, profile, 7+i), texts: map[string]string{}})
		b.noRow = s.chance(50)
	}
}

// rent replaces the holders of a part.
func (s *story) rent(p *storyPart) {
	p.holder = nil
	for range pick(s.author, 0, 1, 1, 2, 3) {
		s.said++
		holder := fmt.Sprintf(`,`+s.pods, "x", fmt.Sprintf("p%d", s.said/2), fmt.Sprintf("c%d", s.said%2))
		if s.chance(30) {
			holder = fmt.Sprintf(`,hpc_job="%d"`, s.said)
		}
		p.holder = append(p.holder, holder)
	}
}

// write writes the rows of a board.
func (s *story) write(b *storyBoard) {
	unit, _ := s.spelled("board_energy")
	b.texts["board_energy"] = strconv.FormatFloat(b.energy/map[bool]float64{true: 1000, false: 1}[unit.kind == "joules"], 'f', -1, 64)
	if b.mute {
		b.texts["board_energy"] = "9223372036854775794"
	}
	for i, p := range b.parts {
		if i == 0 && b.noRow {
			continue
		}
		for _, texts := range []map[string]string{b.texts, p.texts} {
			for field, text := range texts {
				s.row(b.labels+p.labels, p, field, text)
			}
		}
	}
	own := b.labels + s.dialect.host
	for code, n := range b.xids {
		if s.counts {
			s.lines = append(s.lines, fmt.Sprintf("DCGM_EXP_XID_ERRORS_TOTAL{%s,xid=\"%d\"} %d\n", own, code, n))
		}
	}
	for link := range 18 {
		if s.states && s.dialect.spelling != 2 {
			s.lines = append(s.lines, fmt.Sprintf("DCGM_FI_DEV_NVLINK_GET_STATE{nvlink=\"%d\",%s} %d\n", link, own, map[bool]int{true: 1}[link < b.links]))
		}
	}
}

// row writes a part's value of a field, for each holder. If the exporter measures use, a row of the
// part itself comes first.
func (s *story) row(labels string, p *storyPart, field, text string) {
	name := s.name(field)
	if name == "" {
		return
	}
	line := func(holder, text string) {
		s.lines = append(s.lines, fmt.Sprintf("%s{%s%s%s} %s\n", name, labels, s.dialect.host, holder, text))
	}
	measured := s.measures && (field == "nvml" || field == "used") && len(p.holder) > 0
	if len(p.holder) == 0 || measured {
		line("", text)
	}
	for i, holder := range p.holder {
		if measured {
			line(holder, p.used(field, text, i))
		} else {
			line(holder, text)
		}
	}
}

// used returns the use of the i-th holder of a part: half of the previous holder's, or nothing.
func (p *storyPart) used(field, text string, i int) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || len(p.holder) > 2 && field == "nvml" {
		return "0"
	}
	for range i {
		v = float64(int(v / 2))
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// shuffled returns the lines of the current body, by family or in random order.
func (a *author) shuffled() []byte {
	slices.Sort(a.lines)
	if a.chance(30) {
		a.rng.Shuffle(len(a.lines), func(i, j int) { a.lines[i], a.lines[j] = a.lines[j], a.lines[i] })
	} else {
		slices.SortStableFunc(a.lines, func(x, y string) int {
			x, _, _ = strings.Cut(x, "{")
			y, _, _ = strings.Cut(y, "{")
			return strings.Compare(x, y)
		})
	}
	return []byte(strings.Join(a.lines, "") + a.dialect.everywhere)
}

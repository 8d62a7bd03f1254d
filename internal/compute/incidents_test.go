package compute

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// incidentPlay is a section of testdata/incidents.txt while it is played.
type incidentPlay struct {
	t      *testing.T
	judge  *Judge
	at     time.Time
	boards []incidentBoard
	model  string
	driver string
	top    *canonical.Topology
	row    []int // of each board in the topology, -1 for none
	held   bool  // the source lists held boards only
	sxid   string

	verdicts                    []canonical.Verdict
	ledger                      canonical.Ledger
	steps, fatal, falses, lacks int
}

// incidentBoard holds the readings of a board.
type incidentBoard struct {
	row       reading
	counts    map[canonical.Witness]string
	gone, cut bool
	unnamed   bool   // gone, and the source does not name it
	blank     bool   // for one reading
	kernel    string // for one reading
	want      string // verdict, for one reading
}

var incidentFields = map[string]canonical.Field{
	"last": canonical.XIDLast, "energy": canonical.Energy, "ecc": canonical.ECCDoubleBitVolatile, "recovery": canonical.RecoveryAction,
	"links": canonical.NVLinksActive, "clocks": canonical.ClockEvents, "fabric": canonical.FabricHealth, "remap": canonical.RowRemapPending,
	"rows": canonical.RemappedRowsUncorrectable, "replays": canonical.PCIeReplays, "width": canonical.PCIeLinkWidth, "slot": canonical.PCIeLinkWidthMax,
	"util": canonical.NVMLUtilization, "status": canonical.FabricStatus, "mask": canonical.FabricHealthMask, "recoveries": canonical.NVLinkRecoveriesDone,
	"failure": canonical.RowRemapFailure, "sram": canonical.SRAMThresholdExceeded,
}

var incidentWitnesses = map[string]canonical.Witness{
	"window": canonical.WitnessWindow, "total": canonical.WitnessTotal, "driver": canonical.WitnessDriver,
}

// TestIncidents plays incidents from clusters, and logs a table of them.
func TestIncidents(t *testing.T) {
	text, err := os.ReadFile("testdata/incidents.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("%-84s %8s %6s %6s %6s\n", "incident", "readings", "fatal", "false", "missed")
	falses, lacks := 0, 0
	for _, section := range strings.Split(string(text), "\n== ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			p := incidentPlay{t: t, judge: newJudge(t, nil), at: start}
			for line := range strings.Lines(body) {
				if line = strings.TrimSpace(line); line != "" {
					p.line(line)
				}
			}
			table += fmt.Sprintf("%-84s %8d %6d %6d %6d\n", title, p.steps, p.fatal, p.falses, p.lacks)
			falses, lacks = falses+p.falses, lacks+p.lacks
		})
	}
	t.Logf("\n%s\nfalse fatals %d, missed fatals %d", table, falses, lacks)
	if falses+lacks > 0 {
		t.Error("a board must be crit exactly where the incident says so")
	}
}

func (p *incidentPlay) line(line string) {
	if rest, ok := strings.CutPrefix(line, "boards "); ok {
		n, model, _ := strings.Cut(rest, " ")
		p.model, p.driver, _ = strings.Cut(model, " driver ")
		p.boards = make([]incidentBoard, p.number(n))
		for i := range p.boards {
			p.boards[i] = incidentBoard{row: reading{canonical.Temperature: 50, canonical.Energy: 1000}, counts: map[canonical.Witness]string{}}
		}
		p.shape()
		return
	}
	parts := strings.Split(line, "|")
	words := strings.Fields(parts[0])
	gap, err := time.ParseDuration(words[0])
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	times := 1
	if words = words[1:]; len(words) > 0 && words[0][0] == 'x' {
		times, words = p.number(words[0][1:]), words[1:]
	}
	for i := range p.boards {
		p.boards[i].kernel, p.boards[i].blank, p.boards[i].want = "", false, "ok none"
	}
	p.read(words)
	for _, want := range parts[1:] {
		if want = strings.TrimSpace(want); want != "" {
			board, verdict, _ := strings.Cut(want, " ")
			p.boards[p.number(board)].want = verdict
		}
	}
	for i := range p.boards {
		if b := &p.boards[i]; b.gone && b.want == "ok none" {
			b.want = "unknown none" // nothing is known of it
		}
	}
	p.shape()
	for range times {
		p.at = p.at.Add(gap)
		p.judgeLine(line)
	}
}

// read takes in the words of a line, which follow the number of their board.
func (p *incidentPlay) read(words []string) {
	var b *incidentBoard
	uuid := ""
	for _, word := range words {
		key, value, has := strings.Cut(word, "=")
		field, isField := incidentFields[key]
		witness, isWitness := incidentWitnesses[key]
		switch {
		case !has && key[0] >= '0' && key[0] <= '9':
			b, uuid = &p.boards[p.number(key)], "GPU-"+key
		case key == "gone", key == "unnamed", key == "back":
			b.gone, b.unnamed = key != "back", key == "unnamed"
		case key == "held":
			p.held = true
		case key == "sxid":
			p.sxid = value
		case key == "restart":
			faults := p.judge.Faults(nil)
			p.judge, p.ledger = newJudge(p.t, nil), canonical.Ledger{}
			p.judge.Restore(faults, false)
		case key == "blank":
			b.blank = true
		case key == "cut", key == "whole":
			b.cut = key == "cut"
		case key == "resolve":
			if !p.judge.Resolve(uuid) {
				p.t.Error("there was nothing to resolve")
			}
		case key == "kernel":
			b.kernel = value
		case isField && value == "-":
			delete(b.row, field)
		case isField:
			b.row[field] = float64(p.number(value))
		case isWitness && value == "-":
			delete(b.counts, witness)
		case isWitness:
			b.counts[witness] = value
		default:
			p.t.Fatalf("unknown word %q", word)
		}
	}
}

func (p *incidentPlay) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// shape makes the topology of the present boards.
func (p *incidentPlay) shape() {
	var t canonical.Topology
	p.row = make([]int, len(p.boards))
	for i := range p.boards {
		d := canonical.Device{Hostname: "n", GPU: strconv.Itoa(i), UUID: "GPU-" + strconv.Itoa(i), Model: p.model, Driver: p.driver}
		if p.boards[i].gone {
			p.row[i] = -1
			if p.boards[i].unnamed {
				p.row[i] = -2
				continue
			}
			t.Absent, t.Lost = append(t.Absent, d), append(t.Lost, true)
			continue
		}
		p.row[i] = len(t.Devices)
		d.Board = len(t.Devices)
		t.Devices = append(t.Devices, d)
		if p.boards[i].cut {
			d.Instance, d.Profile = "7", "1g.10gb"
			t.Devices = append(t.Devices, d)
		}
	}
	absent := len(t.Devices)
	for i := range p.row {
		if p.row[i] == -1 {
			p.row[i] = absent
			absent++
		}
	}
	t.HeldOnly = p.held
	if p.top == nil || p.top.HeldOnly != p.held || len(p.top.Devices) != len(t.Devices) || len(p.top.Absent) != len(t.Absent) {
		p.top = &t
	}
}

// frame returns the next reading.
func (p *incidentPlay) frame() *canonical.Frame {
	f := frame(p.top, p.at)
	if p.sxid != "" {
		f.Switches = []canonical.SwitchFault{{Hostname: "n"}, {Hostname: "n", PCIBusID: "0000:03:00", Code: uint32(p.number(p.sxid)), At: p.at}}
	}
	for i := range p.boards {
		b := &p.boards[i]
		if !b.gone && !b.blank {
			copy(f.Row(p.row[i]), b.row.row())
		}
	}
	for device := range len(p.top.Devices) + len(p.top.Absent) {
		i := slices.Index(p.row, device)
		if i < 0 {
			continue // an instance
		}
		for w := range canonical.NumWitnesses {
			if counts, ok := p.boards[i].counts[w]; ok {
				f.XIDs = append(f.XIDs, p.counts(device, w, counts)...)
			}
		}
		if p.boards[i].kernel != "" {
			f.XIDEvents = append(f.XIDEvents, p.records(device, p.boards[i].kernel)...)
		}
	}
	return f
}

func (p *incidentPlay) counts(device int, w canonical.Witness, text string) (list []canonical.XIDCount) {
	for entry := range strings.SplitSeq(text, ",") {
		code, count, has := strings.Cut(entry, ":")
		c := canonical.XIDCount{Device: device, Witness: w, Code: uint32(p.number(code))}
		if has {
			c.Count = uint64(p.number(count))
		}
		list = append(list, c)
	}
	return list
}

func (p *incidentPlay) records(device int, text string) (list []canonical.XIDEvent) {
	for entry := range strings.SplitSeq(text, ",") {
		e := canonical.XIDEvent{Device: device, At: p.at.Add(-time.Millisecond), Count: 1, Text: entry}
		parts := strings.Split(entry, ":")
		code, count, has := strings.Cut(parts[0], "*")
		e.Code = uint32(p.number(code))
		if has {
			e.Count = uint64(p.number(count))
		}
		if len(parts) == 3 {
			e.Decoded = true
			e.Severity, _ = canonical.SeverityOf(parts[1])
			e.Action, _ = canonical.ActionOf(parts[2])
		}
		list = append(list, e)
	}
	return list
}

// judgeLine judges one reading of a line, and checks the verdicts against it.
func (p *incidentPlay) judgeLine(line string) {
	f := p.frame()
	p.verdicts = p.judge.Judge(f, p.verdicts)
	p.judge.Account(&p.ledger, f, p.verdicts, 0)
	p.steps++
	for i := range p.boards {
		b := &p.boards[i]
		got := p.verdict(i)
		if got != b.want {
			p.t.Errorf("%s: reading %d at %v: board %d is %s, want %s", line, p.steps, p.at.Sub(start), i, got, b.want)
		}
		want, is := strings.HasPrefix(b.want, "crit"), strings.HasPrefix(got, "crit")
		switch {
		case want:
			p.fatal++
		case is:
			p.falses++
		}
		if want && !is {
			p.lacks++
		}
	}
}

// verdict returns the latest verdict of a board, as the lines have it.
func (p *incidentPlay) verdict(board int) string {
	if !p.boards[board].gone {
		v := &p.verdicts[p.row[board]]
		var raised []string
		for c := range canonical.NumConditions {
			if v.Findings.Of(c) == canonical.Raised {
				raised = append(raised, c.String())
			}
		}
		return strings.TrimSpace(fmt.Sprintf("%v %v %s", v.Health, v.Action, strings.Join(raised, ",")))
	}
	r := p.ledger.Roster
	for i, a := range p.ledger.Absences {
		var d *canonical.Device
		if left := len(r.Devices) - r.Present; i < left {
			d = &r.Devices[r.Present+i]
		} else {
			d = &r.Missed[i-left]
		}
		if d.UUID != "GPU-"+strconv.Itoa(board) || d.IsInstance() {
			continue
		}
		text := fmt.Sprintf("%v %v", a.State, a.Action)
		if a.Gone {
			text += " gone"
		}
		return text
	}
	return "unknown none" // it is not known
}

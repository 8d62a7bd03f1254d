package dcgm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// feeder makes ticks of one child.
type feeder struct {
	stream int
	child  uint64
}

// inventory returns an inventory of boards with these UUIDs.
func boardsOf(uuids ...string) Inventory {
	var n Inventory
	for i, uuid := range uuids {
		d := NewBoard(i, "")
		d.UUID = uuid
		n.Add(d)
	}
	return n
}

// viewOf returns the view of all devices of an inventory.
func viewOf(n Inventory) *view {
	return &view{inventory: n, wanted: slices.Repeat([]bool{true}, len(n.Devices))}
}

// columns are the dmon columns of the names in the tests.
var columns = map[string]string{"A": "SMCLK", "B": "MMCLK", "C": "TMPTR", "X": "SMACT"}

// tick returns a tick that arrives ms after noon, with `name=value` of GPU 0.
func (f *feeder) tick(ms int, says ...string) *tick {
	t := &tick{origin: origin{stream: f.stream, child: f.child}, at: noon.Add(time.Duration(ms) * time.Millisecond)}
	t.entities, t.rows = []dmon.Entity{{ID: "0"}}, 1
	for _, s := range says {
		name, v, _ := strings.Cut(s, "=")
		var value float64
		if _, err := fmt.Sscan(v, &value); err != nil {
			panic(err)
		}
		t.batch.Samples = append(t.batch.Samples, raw.Sample{Family: uint32(FieldOf([]byte(cmp.Or(columns[name], name)))), Value: value})
	}
	return t
}

// said writes a reading and lists it as `name=value`, sorted.
func said(j *join, b *raw.Batch) string {
	w := NewWriter("", "", nil)
	w.SetInventory(boardsOf(uuid0))
	j.view = viewOf(w.inventory)
	b.Reset()
	j.write(w, b)
	var list []string
	for _, s := range b.Samples {
		for name, column := range columns {
			if column == Fields[s.Family].Column {
				list = append(list, fmt.Sprintf("%s=%v", name, s.Value))
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestJoin(t *testing.T) {
	// Each step is a tick, written `D100 A=1` or `P130 X=2` with the time of its
	// arrival, or `fail` or `recover` for the profiling stream, or `refuse` for
	// the device stream; and the resulting reading, "" for none.
	type step struct{ event, want string }
	tests := []struct {
		name  string
		steps []step
	}{
		{"profiling sets the pace", []step{
			{"D0 A=1", ""}, {"P10 X=1", "A=1 X=1 @10"}, {"D100 A=2", ""}, {"P110 X=2", "A=2 X=2 @110"},
		}},
		{"a drift: one device tick joins twice, another not at all", []step{
			{"D0 A=1", ""}, {"P50 X=1", "A=1 X=1 @50"}, {"P150 X=2", "A=1 X=2 @150"},
			{"D160 A=2", ""}, {"D240 A=3", ""}, {"P250 X=3", "A=3 X=3 @250"},
		}},
		{"a device tick of two periods is too old", []step{
			{"D0 A=1", ""}, {"P199 X=1", "A=1 X=1 @199"}, {"P200 X=2", "X=2 @200"}, {"D250 A=2", ""}, {"P300 X=3", "A=2 X=3 @300"},
		}},
		{"a slow stream's period is what it takes", []step{
			{"D0 A=1", ""}, {"D250 A=2", ""}, {"P700 X=1", "A=2 X=1 @700"}, {"P760 X=2", "X=2 @760"},
		}},
		{"profiling stalls", []step{
			{"D0 A=1", ""}, {"P10 X=1", "A=1 X=1 @10"}, {"D100 A=2", ""}, {"D200 A=3", ""}, {"D210 A=4", "A=4 @210"}, {"D310 A=5", "A=5 @310"},
			{"P320 X=9", "A=5 X=9 @320"}, {"D410 A=6", ""},
		}},
		{"profiling fails while a tick waits, and comes back", []step{
			{"D0 A=1", ""}, {"P10 X=1", "A=1 X=1 @10"}, {"D100 A=2", ""}, {"fail", "A=2 @100"}, {"D200 A=3", "A=3 @200"},
			{"recover", ""}, {"D300 A=4", "A=4 @300"}, {"P350 X=2", "A=4 X=2 @350"}, {"D400 A=5", ""},
		}},
		{"profiling fails when no tick waits", []step{
			{"D0 A=1", ""}, {"P10 X=1", "A=1 X=1 @10"}, {"fail", ""}, {"D100 A=2", "A=2 @100"},
		}},
		{"profiling never starts to flow", []step{
			{"D0 A=1", ""}, {"D100 A=2", ""}, {"D2999 A=3", ""}, {"D3000 A=4", "A=4 @3000"}, {"D3100 A=5", "A=5 @3100"},
		}},
		{"profiling is refused at the start", []step{{"D0 A=1", ""}, {"fail", "A=1 @0"}, {"D100 A=2", "A=2 @100"}}},
		{"device fields come later, as profiling fields do", []step{{"P0 X=1", ""}, {"P100 X=2", ""}, {"D150 A=1", ""}, {"P200 X=3", "A=1 X=3 @200"}}},
		{"device fields never come", []step{{"P0 X=1", ""}, {"P2999 X=2", ""}, {"P3000 X=3", "X=3 @3000"}, {"P3100 X=4", "X=4 @3100"}}},
		{"device fields are refused at the start", []step{{"refuse", ""}, {"P0 X=1", "X=1 @0"}, {"P100 X=2", "X=2 @100"}}},
		{"device fields are refused while a tick waits", []step{{"P0 X=1", ""}, {"refuse", "X=1 @0"}, {"P100 X=2", "X=2 @100"}}},
		{"device fields stall later", []step{{"D0 A=1", ""}, {"P10 X=1", "A=1 X=1 @10"}, {"P500 X=2", "X=2 @500"}}},
		{"a blank is bridged for two ticks", []step{
			{"fail", ""}, {"D0 A=1 B=1", "A=1 B=1 @0"}, {"D100 A=2", "A=2 B=1 @100"}, {"D200 A=3", "A=3 B=1 @200"}, {"D300 A=4", "A=4 @300"}, {"D400 A=5 B=5", "A=5 B=5 @400"},
		}},
		{"joining twice does not make a field older", []step{
			{"D0 A=1 B=1", ""}, {"D100 A=1", ""}, {"D200 A=1", ""}, {"P201 X=1", "A=1 B=1 X=1 @201"}, {"P202 X=1", "A=1 B=1 X=1 @202"},
		}},
		{"time does not run backwards", []step{{"D0 A=1", ""}, {"P100 X=1", "A=1 X=1 @100"}, {"fail", ""}, {"D99 A=2", "A=2 @100"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var failed [2]bool
			j := &join{period: 100 * time.Millisecond, expects: func(stream int) bool { return !failed[stream] }}
			feeders := map[byte]*feeder{'D': {stream: device}, 'P': {stream: profiling}}
			for _, step := range tt.steps {
				whole := false
				switch words := strings.Fields(step.event); words[0] {
				case "fail":
					failed[profiling] = true
					whole = j.release()
				case "refuse":
					failed[device] = true
					whole = j.release()
				case "recover":
					failed[profiling] = false
				default:
					ms := 0
					fmt.Sscan(words[0][1:], &ms)
					whole = j.add(feeders[words[0][0]].tick(ms, words[1:]...))
				}
				got := ""
				if whole {
					b := &raw.Batch{}
					got = said(j, b)
					got = fmt.Sprintf("%s @%d", got, b.At.Sub(noon).Milliseconds())
				}
				if got != step.want {
					t.Errorf("%s: reading %q, want %q", step.event, got, step.want)
				}
			}
		})
	}
}

// A restarted child has ids of its own, and its gaps are not bridged.
func TestJoinAfterARestart(t *testing.T) {
	j := &join{period: 100 * time.Millisecond, expects: func(int) bool { return false }}
	b := &raw.Batch{}
	first := &feeder{stream: device, child: 1}
	j.add(first.tick(0, "A=1", "B=2"))
	second := &feeder{stream: device, child: 2}
	j.add(second.tick(100, "C=3", "A=4"))
	if got := said(j, b); got != "A=4 C=3" {
		t.Errorf("reading %q", got)
	}
}

func TestJoinCountsSkippedLinesOnce(t *testing.T) {
	j := &join{period: 100 * time.Millisecond, expects: func(int) bool { return true }}
	d, p := &feeder{stream: device}, &feeder{stream: profiling}
	total := 0
	for i := range 3 {
		for _, tk := range []*tick{d.tick(100*i, "A=1"), d.tick(100*i+1, "A=1"), p.tick(100*i+10, "X=1"), p.tick(100*i+20, "X=1")} {
			tk.batch.Skipped = 1
			if j.add(tk) {
				b := &raw.Batch{}
				said(j, b)
				total += b.Skipped
			}
		}
	}
	if total != 12 {
		t.Errorf("%d lines were skipped in 12 ticks with one each", total)
	}
}

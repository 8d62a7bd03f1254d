package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

const (
	// boardA is a row that shows board 0; the rows of XIDs below begin as it does.
	boardA = "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"A\"} 40\n"
	boardB = "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"B\"} 40\n"
)

// xidRow is a row that counts XIDs, "total" or "window", of a board; labels are further ones.
func xidRow(family, uuid, labels, value string) string {
	name := map[string]string{"total": xidTotalFamily, "window": xidWindowFamily}[family]
	return fmt.Sprintf("%s{gpu=\"%d\",UUID=\"%s\"%s} %s\n", name, uuid[0]-'A', uuid, labels, value)
}

// told writes the XIDs of a frame as GPU, witness, code and count.
func told(f *c.Frame) string {
	var all []string
	for _, x := range f.XIDs {
		all = append(all, fmt.Sprintf("%s:%c%d=%d", f.Topology.At(x.Device).GPU, "wtdk"[x.Witness], x.Code, x.Count))
	}
	return strings.Join(all, " ")
}

func TestXIDsOfExporters(t *testing.T) {
	const five, one = `,window_size_in_ms="300000"`, `,window_size_in_ms="60000"`
	for _, test := range []struct {
		name, body string
		want       string
		outOfRange uint64
	}{
		{"no family", boardA, "", 0},
		{"total", boardA + xidRow("total", "A", `,xid="48"`, "1") + xidRow("total", "A", `,xid="45"`, "168924"), "0:t45=168924 0:t48=1", 0},
		{"none, as 4.8.2 says it", boardA + xidRow("window", "A", five, "0"), "0:w0=0", 0},
		{"none, as a sample of 0 says it", boardA + xidRow("window", "A", five+`,xid="0"`, "3"), "0:w0=0", 0},
		{"both", boardA + xidRow("window", "A", five+`,xid="79"`, "2") + xidRow("total", "A", `,xid="79"`, "3"), "0:w79=2 0:t79=3", 0},
		{"several windows", boardA + xidRow("window", "A", one, "0") + xidRow("window", "A", five+`,xid="79"`, "2") + xidRow("window", "A", one+`,xid="79"`, "1"), "0:w79=2", 0},
		{"instances repeat the board's", boardA +
			xidRow("total", "A", `,GPU_I_ID="1",GPU_I_PROFILE="1g.10gb",xid="94"`, "2") +
			xidRow("total", "A", `,GPU_I_ID="2",GPU_I_PROFILE="1g.10gb",xid="94"`, "2"), "0:t94=2", 0},
		{"a board of instances alone", strings.ReplaceAll(boardA, `"A"`, `"A",GPU_I_ID="1"`) + xidRow("total", "A", `,GPU_I_ID="1",xid="94"`, "2"), "0:t94=2", 0},
		{"pods repeat it too", boardA + xidRow("total", "A", `,xid="31",pod="x"`, "4") + xidRow("total", "A", `,xid="31",pod="y"`, "4"), "0:t31=4", 0},
		{"a board that is lost", boardA + xidRow("total", "A", `,xid="13"`, "1") + xidRow("total", "B", `,xid="79"`, "1"), "0:t13=1 1:t79=1", 0},
		{"none in the window", boardA + xidRow("window", "A", five, "0") + xidRow("total", "A", `,xid="79"`, "3"), "0:w0=0 0:t79=3", 0},
		{"a blank code", boardA + xidRow("total", "A", `,xid="<<<NULL>>>"`, "0"), "0:t0=0", 0},
		{"one code on two boards", boardA + boardB + xidRow("total", "A", `,xid="79"`, "1") + xidRow("total", "B", `,xid="79"`, "2"), "0:t79=1 1:t79=2", 0},
		{"none on the board before", boardA + boardB + xidRow("total", "A", "", "0") + xidRow("total", "B", `,xid="48"`, "1"), "0:t0=0 1:t48=1", 0},
		{"boards that are lost", boardA + xidRow("total", "B", `,xid="79"`, "1") + xidRow("total", "C", `,xid="48"`, "2"), "1:t79=1 2:t48=2", 0},
		{"the code first", boardA + boardB + xidTotalFamily + "{xid=\"48\",gpu=\"0\",UUID=\"A\"} 1\n" + xidTotalFamily + "{gpu=\"1\",UUID=\"B\"} 0\n", "0:t48=1 1:t0=0", 0},
		{"no whole number", boardA + xidRow("total", "A", `,xid="31"`, "1.5") + xidRow("total", "A", `,xid="32"`, "-1") + xidRow("total", "A", `,xid="33"`, "1e30"), "", 3},
		{"no code", boardA + xidRow("total", "A", `,xid="x"`, "1") + xidRow("total", "A", `,xid="-1"`, "1") + xidRow("total", "A", `,xid="99999"`, "1"), "", 3},
		{"of no device", boardA + xidTotalFamily + "{xid=\"79\"} 1\n" + xidTotalFamily + "{nvswitch=\"1\",gpu=\"0\",UUID=\"A\",xid=\"79\"} 1\n", "", 0},
		{"before the board's own rows", xidRow("total", "B", `,xid="13"`, "1") + boardB + boardA, "1:t13=1", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{}, test.body)
			if got := told(&r.frame); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if n := r.report.Dropped[c.DropOutOfRange]; n != test.outOfRange {
				t.Errorf("%d out of range, want %d", n, test.outOfRange)
			}
			if len(r.report.UnknownFamilies) != 0 {
				t.Errorf("unknown: %q", r.report.UnknownFamilies)
			}
			r.read(boardA)
			if got := told(&r.frame); got != "" {
				t.Errorf("%s is left of the reading before", got)
			}
		})
	}
}

// Samples that are not finite or are stale are dropped and counted, as for readings.
func TestXIDsDropped(t *testing.T) {
	r := newReader(t, Options{})
	r.batch.At = time.UnixMilli(1_000_000_000_000)
	r.batch.Body = []byte(boardA + xidRow("total", "A", `,xid="31"`, "NaN") + xidRow("total", "A", `,xid="48"`, "1 1000"))
	r.scanner.Scan(&r.batch)
	r.tr.Translate(&r.frame, &r.batch, &r.report)
	if got := told(&r.frame); got != "" || r.report.Dropped[c.DropNotFinite] != 1 || r.report.Dropped[c.DropStale] != 1 {
		t.Errorf("%s, dropped %v", got, r.report.Dropped)
	}
}

// A board has at most HighestXID codes, whatever its exporter writes.
func TestXIDsAreBounded(t *testing.T) {
	var body strings.Builder
	body.WriteString(boardA)
	for code := range 5000 {
		body.WriteString(xidRow("total", "A", fmt.Sprintf(",xid=\"%d\"", code), "1"))
	}
	if r := translated(t, Options{}, body.String()); len(r.frame.XIDs) != c.HighestXID || r.report.Dropped[c.DropOutOfRange] != 5000-c.HighestXID-1 {
		t.Errorf("%d counts, %d dropped", len(r.frame.XIDs), r.report.Dropped[c.DropOutOfRange])
	}
}

// Codes follow the ids of the Dict as codes, boards and Dicts come and go.
func TestXIDsFollow(t *testing.T) {
	r := newReader(t, Options{})
	for i, step := range []struct{ body, want string }{
		{boardA + boardB, ""},
		{boardA + boardB + xidRow("total", "B", `,xid="13"`, "1"), "1:t13=1"},
		{boardA + boardB + xidRow("total", "B", `,xid="13"`, "2") + xidRow("total", "A", `,xid="48"`, "1"), "0:t48=1 1:t13=2"},
		{boardB + xidRow("total", "B", `,xid="13"`, "2") + xidRow("total", "A", `,xid="79"`, "1"), "1:t13=2 0:t79=1"}, // 0 is lost
		{boardA + boardB, ""},
		{boardA + boardB + xidRow("total", "B", `,xid="13",pod="p"`, "3"), "1:t13=3"},
		{boardA + boardB + xidRow("total", "B", `,xid="13",pod="q"`, "4"), "1:t13=4"},
	} {
		r.read(step.body)
		if got := told(&r.frame); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	r.batch = raw.Batch{Dict: raw.NewDict()}
	r.read(xidRow("window", "A", `,xid="63"`, "7") + boardA)
	if got := told(&r.frame); got != "0:w63=7" {
		t.Errorf("in another Dict: %s", got)
	}
}

// XIDs that the driver reports belong to its boards, lost ones included.
func TestXIDsOfTheDriver(t *testing.T) {
	r := newReader(t, Options{})
	r.batch.Body = []byte(boardA + lostFamily + "{gpu=\"1\",UUID=\"B\"} 1\n")
	r.scanner.Scan(&r.batch)
	block := func(text string) uint32 { return r.batch.Dict.BlockID([]byte(text)) }
	a, b, other := block(`{gpu="0",UUID="A"}`), block(`{gpu="1",UUID="B"}`), block(`{gpu="2",UUID="C"}`)
	at := time.Unix(1000, 0)
	r.batch.XIDs = []raw.XID{{Labels: a}, {Labels: b, Code: 45, Count: 3}, {Labels: b, Code: 79, Count: 1, Last: at}, {Labels: other, Code: 8, Count: 1}, {Labels: block(`{nvswitch="1"}`), Code: 9, Count: 1}, {Labels: a, Code: 1 << 20, Count: 1}}
	r.tr.Translate(&r.frame, &r.batch, &r.report)
	if got := told(&r.frame); got != "0:d0=0 1:d45=3 1:d79=1" || r.report.Dropped[c.DropOutOfRange] != 1 {
		t.Errorf("%s, dropped %v", got, r.report.Dropped)
	}
	if i := slices.IndexFunc(r.frame.XIDs, func(x c.XIDCount) bool { return x.Code == 79 }); i < 0 || !r.frame.XIDs[i].Last.Equal(at) {
		t.Errorf("the time is lost: %+v", r.frame.XIDs)
	}
}

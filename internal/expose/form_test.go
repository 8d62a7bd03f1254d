package expose

import (
	"bytes"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// lived is kept with the births of its accounts; the idle time of the pod on the board that left is
// young, and so are the unknown time of the first board and its count of the blank values.
func lived() *canonical.Snapshot {
	s := kept()
	for _, accounts := range [][]canonical.Account{s.Ledger.Devices, s.Ledger.Allocations} {
		for i := range accounts {
			a := &accounts[i]
			for class, d := range a.Classes {
				if d > 0 {
					a.Births.Born |= 1 << class
				}
			}
			for state, d := range a.Health {
				if d > 0 {
					a.Births.Born |= 1 << (canonical.FirstState + uint(state))
				}
			}
		}
	}
	s.Ledger.Allocations[4].Births.Young = 1 << canonical.Idle
	s.Ledger.Devices[0].Births.Young = 1 << canonical.ClassUnknown
	s.Source.DroppedValues[canonical.DropBlank], s.Source.DroppedValues[canonical.DropStale] = 3, 4
	s.Source.Drops = canonical.Births{Born: 1<<canonical.DropBlank | 1<<canonical.DropStale, Young: 1 << canonical.DropBlank}
	return s
}

// renderIn renders readings in a form.
func renderIn(f Form, readings ...outcome) []byte {
	var out bytes.Buffer
	s := output{buffer: buffer{w: &out}}
	newRenderer(f).write(&s, &atomic.Pointer[layout]{}, readings)
	s.flush()
	return out.Bytes()
}

// TestLeanIsPartOfFull: the full form has all series of the lean form. The lean form leaves out only
// families of the table and of the proxy's own telemetry, and of the former only values that are 0,
// that follow from what it serves, or of which SERIES.md says what is in their place. A counter that
// has not counted is left out, and a young one is 0.
func TestLeanIsPartOfFull(t *testing.T) {
	thinned, own := map[string]bool{}, map[string]bool{}
	for _, row := range ThinnedTable() {
		for _, name := range row.Families {
			thinned[canonical.Prefix+name] = true
		}
	}
	for _, name := range ownTelemetry() {
		own[canonical.Prefix+name] = true
	}
	readings := []outcome{good(lived()), good(snapshotOf("http://node-c:9400/metrics", everything()))}
	full, lean := parse(t, renderIn(Form{Full: true}, readings...)), parse(t, renderIn(Form{}, readings...))
	young := 0
	for series, v := range lean {
		was, there := full[series]
		if !there || was != v && v != 0 {
			t.Errorf("lean has %s %v, full %v (%v)", series, v, was, there)
		}
		if was != v {
			young++
		}
	}
	if young != 3 {
		t.Errorf("%d counters are young, want 3", young)
	}
	missed := map[string]bool{}
	for series, v := range full {
		if _, there := lean[series]; there {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(series, `{__name__="`), `"`)
		missed[name] = true
		if derived := derived.MatchString(series); !own[name] && name != "kpulse_source_dropped_values_total" && (!thinned[name] || v != 0 && !derived) {
			t.Errorf("lean lacks %s %v", series, v)
		}
	}
	for name := range thinned {
		if !missed[name] {
			t.Errorf("nothing of %s is left out: the table, or this test, is wrong", name)
		}
	}
}

// derived matches series of values that others give.
var derived = regexp.MustCompile(`framebuffer_(reserved_bytes|used_ratio)|action="none"|nvlink_bytes_per|scope="aggregate"|xid_changes|gpu_allocations"`)

// TestLeanKeepsWhatNothingGives: a value that follows from others is served if one of these is absent.
func TestLeanKeepsWhatNothingGives(t *testing.T) {
	for field, from := range map[canonical.Field][]canonical.Field{
		canonical.FramebufferReserved:   {canonical.FramebufferUsed, canonical.FramebufferFree, canonical.FramebufferTotal},
		canonical.FramebufferUsedRatio:  {canonical.FramebufferUsed, canonical.FramebufferTotal},
		canonical.NVLinkBytes:           {canonical.NVLinkTransmit, canonical.NVLinkReceive},
		canonical.ECCSingleBitAggregate: {canonical.ECCSingleBitVolatile},
		canonical.ECCDoubleBitAggregate: {canonical.ECCDoubleBitVolatile},
	} {
		line := regexp.MustCompile(`(?m)^kpulse_` + canonical.Fields[field].Name + `\{.*` + canonical.Fields[field].Labels + `\} 5$`)
		for absent := range len(from) + 1 {
			d := everything()
			d.given[field] = 5
			if absent < len(from) {
				delete(d.given, from[absent])
			}
			if got := line.Match(renderIn(Form{}, good(snapshotOf("n", d)))); got != (absent < len(from)) {
				t.Errorf("%s without source %d of %d: served %v", canonical.Fields[field].Name, absent, len(from), got)
			}
		}
	}
}

// everything is a board that gives every field, most of them 0.
func everything() device {
	d := unread()
	d.Hostname, d.GPU, d.UUID = "node-c", "0", "GPU-c0"
	d.given = given{}
	for f := range canonical.NumFields {
		d.given[f] = 0
	}
	d.given[canonical.FramebufferTotal], d.given[canonical.FramebufferUsed] = 8<<30, 2<<30
	d.given[canonical.FramebufferFree], d.given[canonical.FramebufferReserved], d.given[canonical.FramebufferUsedRatio] = 5<<30, 1<<30, 0.25
	d.verdict = canonical.Verdict{Coverage: 1, Class: canonical.Idle, Health: canonical.HealthOK}
	d.verdict.Findings.Set(canonical.CondPCIeReplay, canonical.Clear)
	return d
}

// TestExclude: families of any subject are left out by their full names, and nothing else
// changes.
func TestExclude(t *testing.T) {
	snap := lived()
	all := parse(t, renderIn(Form{}, good(snap)))
	for _, text := range []string{
		"kpulse_gpu_info", "kpulse_build_info", "kpulse_source_.+", "kpulse_real_utilization_weight", "kpulse_allocation_.+",
		"kpulse_gpu_xid_errors_total", "kpulse_gpu_fabric_info", "kpulse_gpu_health(_condition)?", "kpulse_.+",
	} {
		whole := regexp.MustCompile("^(?:" + text + ")$")
		body := renderIn(Form{Exclude: whole.MatchString}, good(snap))
		want := maps.Clone(all)
		maps.DeleteFunc(want, func(series string, _ float64) bool {
			name, _, _ := strings.Cut(strings.TrimPrefix(series, `{__name__="`), `"`)
			return whole.MatchString(name)
		})
		if text == "kpulse_.+" {
			if len(body) > 0 {
				t.Errorf("%s leaves %q", text, body)
			}
			continue
		}
		if got := parse(t, body); !maps.Equal(got, want) {
			t.Errorf("%s: %d series of %d, want %d", text, len(got), len(all), len(want))
		}
	}
}

// TestLeanAllocatesNothing: like the full form.
func TestLeanAllocatesNothing(t *testing.T) {
	for _, f := range []Form{{}, {Exclude: func(name string) bool { return name == "kpulse_gpu_info" }}} {
		w, snap := NewWriter(f), allocated(fleet(16), 40)
		if n := testing.AllocsPerRun(20, func() { _ = w.Write(io.Discard, snap) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// TestThinnedTableIsOfFamilies: the table names existing families, each once.
func TestThinnedTableIsOfFamilies(t *testing.T) {
	var names []string
	for _, s := range SeriesTable() {
		names = append(names, s.Name)
	}
	seen := map[string]bool{}
	for _, row := range ThinnedTable() {
		for _, name := range row.Families {
			if seen[name] || !slices.Contains(names, canonical.Prefix+name) {
				t.Errorf("%s is not a family, or named twice", name)
			}
			seen[name] = true
		}
	}
}

// ownTelemetry returns the families, without canonical.Prefix, that only the full form has. The proxy's
// own telemetry has them with the prefix kpulse_proxy_.
func ownTelemetry() (names []string) {
	names = append(names, weightSeries.Name)
	for _, f := range hostFamilies() {
		names = append(names, f.Name)
	}
	for _, f := range sourceFamilies() {
		if f.full {
			names = append(names, f.Series.Name)
		}
	}
	return names
}

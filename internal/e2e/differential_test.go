package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

const (
	// fewBodies take a few seconds; KPULSE_DIFFERENTIAL sets another number.
	fewBodies = 200
	// chapter is the number of bodies in a story: the reference's work grows with its square.
	chapter = 20
)

// TestDifferential plays random stories of every dialect through the program's pipeline, on a
// simulated clock, and compares all series of devices and workloads, in both forms, with the
// reference. KPULSE_DIFFERENTIAL is the number of bodies, optionally followed by a colon and the
// seed.
func TestDifferential(t *testing.T) {
	t.Parallel()
	bodies, seed := e2etest.Seeded(t, "KPULSE_DIFFERENTIAL", fewBodies, strconv.Atoi, "20")
	seen := map[string]int{}
	for told := 0; told < bodies && !t.Failed(); told += chapter {
		playStory(t, seed, seen)
		if t.Failed() {
			t.Logf("KPULSE_DIFFERENTIAL=%d:%d plays the story that failed", chapter, seed)
		}
		seed++
	}
	t.Logf("%d bodies, %d series compared", bodies, seen["series"])
	if bodies < 50*fewBodies {
		return
	}
	enough := func(what string) {
		if seen[what] < 10 {
			t.Errorf("only %d times %s", seen[what], what)
		}
	}
	for class := range bottlenecks {
		enough(class)
	}
	for c := range canonical.NumConditions {
		enough(c.String())
	}
	for i := range dialects {
		enough(dialects[i].String())
	}
	for _, mark := range marks {
		enough(mark)
	}
	if seen["edge"] > bodies/chapter/20 {
		t.Errorf("%d of %d stories ended early, at the threshold of a class", seen["edge"], bodies/chapter)
	}
}

// marks are parts of series that a long run must have had: instances, holders, shares of both kinds,
// XIDs, and energy by holder.
var marks = []string{
	`mig_instance="`, `workload_pod="`, `hpc_job="`, `share="measured"`, `share="equal"`,
	`__name__="kpulse_gpu_xid_errors_total"`, `__name__="kpulse_allocation_energy_joules_total"`,
}

// String identifies a dialect in the counts of a run.
func (d *dialect) String() string {
	return fmt.Sprintf("dialect with spelling %d, label %s, %q everywhere", d.spelling, d.uuid, d.everywhere)
}

// judging returns the program's options of a setting.
func (s *setting) judging() compute.Options {
	o := compute.DefaultOptions()
	o.Preset, o.Weights = compute.Custom, canonical.Weights{SM: s.SM, Tensor: s.Tensor, DRAM: s.DRAM, Engine: s.GR}
	o.MinCoverage = s.MinCoverage / 100
	if s.Zero {
		o.Missing = compute.Zero
	}
	return o
}

// playStory plays the story of a seed until the reference and the program differ. seen counts
// classes, conditions, dialects and marks.
func playStory(t *testing.T, seed uint64, seen map[string]int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.prom")
	synctest.Test(t, func(t *testing.T) {
		a := &author{rng: rand.New(rand.NewPCG(seed, 26)), speaks: dialects}
		set := a.setting()
		s, ref := a.tell(), newChronicle(set, "n")
		src, err := exporter.New(file, exporter.Options{MaxBody: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p := assembleFor(t, src, 0, nil, set.judging())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.Run(ctx)
		}()
		defer func() { cancel(); <-ended }()
		writers := map[string]*expose.Writer{}
		for name, form := range forms {
			writers[name] = expose.NewWriter(form)
		}
		for n := range chapter {
			time.Sleep(s.gap())
			body := s.page()
			if err := os.WriteFile(file, body, 0o600); err != nil {
				t.Fatal(err)
			}
			snap, release, err := p.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]map[string]float64{"full": ref.read(snap.Source.At, body)}
			want["lean"] = ref.lean(want["full"])
			if ref.edge(seen) { // from here on, the two may differ
				seen["edge"]++
				release()
				return
			}
			for name, w := range writers {
				var text bytes.Buffer
				if err := w.Write(&text, snap); err != nil {
					t.Fatal(err)
				}
				if difference := ref.differ(t, text.Bytes(), want[name]); difference != "" {
					t.Errorf("seed %d, reading %d, %s form\nprogram | reference | series\n%s\nflags %v, body:\n%s", seed, n, name, difference, set.flags, body)
				}
			}
			release()
			seen["series"] += len(want["full"])
			if n == chapter-1 {
				countMarks(seen, s, want["full"])
			}
			if t.Failed() {
				return
			}
		}
	})
}

// countMarks adds the dialect and the marks of a story's last reading to seen.
func countMarks(seen map[string]int, s *story, want map[string]float64) {
	seen[s.dialect.String()]++
	for name := range want {
		for _, mark := range marks {
			if strings.Contains(name, mark) {
				seen[mark]++
			}
		}
	}
}

// edge reports whether a score is within rounding of a class's threshold, where either class is
// right, and counts classes and conditions.
func (c *chronicle) edge(seen map[string]int) bool {
	edge := false
	for _, d := range c.devices {
		edge = edge || math.Abs(d.utilization-.05) < 1e-9
		if !d.left.IsZero() {
			continue
		}
		seen[d.class]++
		for i, f := range d.found {
			if f != "absent" && f != "clear" && f != "" {
				seen[canonical.Condition(i).String()]++
			}
		}
	}
	return edge
}

// unjudged are our families that are not of devices and workloads: they have tests of their own.
var unjudged = []string{"kpulse_source_", "kpulse_host_", "kpulse_build_info", "kpulse_real_utilization_weight"}

// emptyLabel matches a label with an empty value.
var emptyLabel = regexp.MustCompile(`, [a-z_]+=""`)

// differ lists the differences between our exposition and the reference; "" if they agree.
func (c *chronicle) differ(t *testing.T, text []byte, want map[string]float64) string {
	t.Helper()
	parsed, err := parseExposition(text)
	if err != nil {
		return err.Error()
	}
	got := series{}
	for name, v := range parsed {
		if strings.Contains(name, `=""`) { // a server drops it
			name = emptyLabel.ReplaceAllString(name, "")
		}
		got[name] = v
	}
	var out strings.Builder
	for name, v := range got {
		if w, is := want[name]; !is && !isUnjudged(name) {
			fmt.Fprintf(&out, "%g | none | %s\n", v, name)
		} else if is && math.Abs(v-w) > slack(name, w) {
			fmt.Fprintf(&out, "%g | %g | %s\n", v, w, name)
		}
	}
	for name, w := range want {
		if _, is := got[name]; !is {
			fmt.Fprintf(&out, "none | %g | %s\n", w, name)
		}
	}
	return out.String()
}

func isUnjudged(series string) bool {
	for _, family := range unjudged {
		if strings.Contains(series, `__name__="`+family) {
			return true
		}
	}
	return false
}

// slack is the tolerance for rounding: shares of a second are whole microseconds, utilized seconds
// whole nanoseconds in each reading.
func slack(series string, v float64) float64 {
	if strings.Contains(series, "kpulse_allocation_") {
		return chapter * 2e-6
	}
	return chapter * 1e-9 * max(1, math.Abs(v))
}

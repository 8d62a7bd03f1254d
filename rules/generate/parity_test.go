package main

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/slow"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)

const file = "../twin/dcgm-exporter.rules.yml"

func shipped(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// TestFileIsGenerated fails if a constant was changed and the file was not.
func TestFileIsGenerated(t *testing.T) {
	want, err := exporterRules().render()
	if err != nil {
		t.Fatal(err)
	}
	if shipped(t) != want {
		t.Errorf("%s differs from what the constants generate: run make rules", file)
	}
}

// TestParity reads a random cluster several times with the program and the rules: both agree
// on every device.
func TestParity(t *testing.T) {
	slow.Test(t, "hours of readings, judged by the rules and by the program")
	const nodes, readings = 48, 16
	r := rand.New(rand.NewPCG(2026, 6))
	s := newServer(t, shipped(t))
	var cluster []*node
	var proxies []*proxy
	for i := range nodes {
		cluster = append(cluster, newNode(r, i))
		host, _, err := net.SplitHostPort(cluster[i].address)
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, newProxy(t, host))
	}
	var reached tally
	at := start
	for n := range readings {
		want := map[string]float64{}
		for i, node := range cluster {
			body := node.scrape()
			s.scrape(node.address, at, body)
			proxies[i].read(at, body)
			proxies[i].conclude(want)
			reached.count(proxies[i])
		}
		s.evaluate(at)
		list := differences(want, s.concluded(at))
		if len(list) > 0 {
			slices.Sort(list)
			t.Fatalf("reading %d: of %d series %d differ:\n%s", n, len(want), len(list), strings.Join(list[:min(len(list), 20)], "\n"))
		}
		// Sums of exactly ten minutes occur too: events last that long.
		at = at.Add(pick(r, 5*time.Second, 10*time.Second, 30*time.Second, 150*time.Second))
	}
	reached.check(t)
}

// tally counts what occurred: a class that never occurs is not tested.
type tally struct {
	devices, scores, undecided, implied int
	classes                             [canonical.NumClasses]int
	states                              [canonical.NumHealth]int
	findings                            [canonical.NumConditions][3]int
}

func (n *tally) count(p *proxy) {
	for i := range p.verdicts {
		d, v := &p.frame.Topology.Devices[i], &p.verdicts[i]
		n.devices++
		if d.Implied {
			n.implied++
		} else {
			n.classes[v.Class]++
		}
		if canonical.Given(v.RealUtilization) {
			n.scores++
			if v.Class == canonical.ClassUnknown {
				n.undecided++
			}
		}
		if !d.IsInstance() {
			n.states[v.Health]++
			for c := range canonical.NumConditions {
				found := v.Findings.Of(c)
				n.findings[c][found]++
			}
		}
	}
}

func (n *tally) check(t *testing.T) {
	t.Logf("%+v", *n)
	if least := min(n.scores, n.undecided, n.implied); least < 50 || n.devices < 4_000 {
		t.Errorf("of %d devices %d have a score, %d an undecided class, and %d boards are implied: too few", n.devices, n.scores, n.undecided, n.implied)
	}
	for c, times := range n.classes {
		if times < 3 { // the rarest occurs some 9 to 20 times
			t.Errorf("class %s occurred %d times", canonical.Class(c), times)
		}
	}
	for h, times := range n.states {
		if times < 10 {
			t.Errorf("health %s occurred %d times", canonical.Health(h), times)
		}
	}
	for c, times := range n.findings {
		if c := canonical.Condition(c); slices.Contains(beyond, c) || c == canonical.CondXIDFatal {
			continue // fatal codes do not occur: see live
		}
		if min(times[0], times[1], times[2]) < 20 {
			t.Errorf("condition %s was absent, clear and raised %v times", canonical.Condition(c), times)
		}
	}
}

// TestParityOnCaptures reads the captures of the repository, at least one per exporter
// version.
func TestParityOnCaptures(t *testing.T) {
	slow.Test(t, "hours of readings, judged by the rules and by the program")
	files, err := filepath.Glob("../../testdata/captures/*.prom")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, s := newProxy(t, "10.0.0.1"), newServer(t, shipped(t))
			want := map[string]float64{}
			body = accepted(body) // an unescaped label costs Prometheus the scrape, and the proxy only that label
			p.read(start, body)
			p.conclude(want)
			s.scrape("10.0.0.1:9400", start, body)
			s.evaluate(start)
			list := differences(want, s.concluded(start))
			slices.Sort(list)
			if len(list) > 0 {
				t.Errorf("of %d series %d differ:\n%s", len(want), len(list), strings.Join(list, "\n"))
			}
		})
	}
}

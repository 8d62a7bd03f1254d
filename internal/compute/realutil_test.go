package compute

import (
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestParseWeights(t *testing.T) {
	off := 1 + 1.05e-12 // too far from 1 for rounding
	for _, c := range []struct {
		in   string
		want canonical.Weights
	}{
		{"0.35,0.35,0.2,0.1", canonical.Weights{SM: 0.35, Tensor: 0.35, DRAM: 0.2, Engine: 0.1}},
		{"1,1,1,1", canonical.Weights{SM: 0.25, Tensor: 0.25, DRAM: 0.25, Engine: 0.25}},
		{" 4, 3 ,2,1", canonical.Weights{SM: 0.4, Tensor: 0.3, DRAM: 0.2, Engine: 0.1}},
		{"0,0,0,2e300", canonical.Weights{Engine: 1}},
		{"5e-324,0,0,0", canonical.Weights{SM: 1}},
		{"1.7976931348623157e308,0,0,0", canonical.Weights{SM: 1}},
		{"0.5,0.5,0,0.95e-12", canonical.Weights{SM: 0.5, Tensor: 0.5, Engine: 0.95e-12}},
		{"0.5,0.5,0,1.05e-12", canonical.Weights{SM: 0.5 / off, Tensor: 0.5 / off, Engine: 1.05e-12 / off}},
	} {
		got, err := ParseWeights(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseWeights(%q) = %v, %v, want %v", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{
		"", "1", "1,1,1", "1,1,1,1,1", "a,1,1,1", "1,,1,1", "0,0,0,0", "-1,1,1,1", "NaN,1,1,1",
		"Inf,1,1,1", "1e999,1,1,1", "1e308,1e308,1e308,1", "1;1;1;1", "-0.1,0.5,0.5,0.1",
		"1,-1,1,1", "1,1,-1,1", "1,1,1,-1", "1,NaN,1,1", "1,1,NaN,1", "1,1,1,NaN", "1,1,1,Inf",
	} {
		got, err := ParseWeights(in)
		if err == nil {
			t.Errorf("ParseWeights(%q) = %v, want an error", in, got)
		} else if !strings.Contains(err.Error(), "sm,tensor,dram,engine") {
			t.Errorf("ParseWeights(%q): %v: does not say what is right", in, err)
		}
	}
}

func TestParseMissing(t *testing.T) {
	for word, want := range map[string]Missing{"renormalize": Renormalize, "zero": Zero} {
		if got, err := ParseMissing(word); err != nil || got != want || got.String() != word {
			t.Errorf("ParseMissing(%q) = %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "Zero", "renormalise", "0"} {
		if _, err := ParseMissing(word); err == nil || !strings.Contains(err.Error(), "renormalize, zero") {
			t.Errorf("ParseMissing(%q): %v: does not say what is right", word, err)
		}
	}
}

func TestScore(t *testing.T) {
	const s, te, d, g, n = canonical.SMActive, canonical.TensorActive, canonical.DRAMActive, canonical.GraphicsEngineActive, canonical.NVMLUtilization
	all := reading{s: 0.9, te: 0.5, d: 0.3, g: 0.4}
	ai, hpc, mem := Presets[0].Weights, Presets[1].Weights, Presets[2].Weights
	for _, c := range []struct {
		name           string
		r              reading
		c              composite
		util, coverage float64
	}{
		// 0.35·90+0.35·50+0.2·30+0.1·40 = 59; likewise 61.5 and 54.5.
		{"ai", all, composite{ai, Renormalize, 0.5}, 0.59, 1},
		{"hpc", all, composite{hpc, Renormalize, 0.5}, 0.615, 1},
		{"mem", all, composite{mem, Renormalize, 0.5}, 0.545, 1},
		{"zero does not matter when all is there", all, composite{ai, Zero, 0.5}, 0.59, 1},
		{"full", reading{s: 1, te: 1, d: 1, g: 1}, composite{ai, Renormalize, 0.5}, 1, 1},
		{"clamped", reading{s: 1.1, te: 1.1, d: 1.1, g: 1.1}, composite{ai, Renormalize, 0.5}, 1, 1},
		{"nothing used", reading{s: 0, te: 0, d: 0, g: 0}, composite{ai, Renormalize, 0.5}, 0, 1},

		{"NVML stands in for the engine", reading{s: 0, te: 0, d: 0, n: 1}, composite{ai, Renormalize, 0.5}, 0.1, 1},
		{"the engine goes before NVML", reading{s: 0, te: 0, d: 0, g: 0.2, n: 1}, composite{ai, Renormalize, 0.5}, 0.02, 1},

		// (0.35·0.5+0.2·0.3+0.1·0.4)/0.65 = 0.275/0.65
		{"no SM", reading{te: 0.5, d: 0.3, g: 0.4}, composite{ai, Renormalize, 0.5}, 0.275 / 0.65, 0.65},
		{"no SM, zero", reading{te: 0.5, d: 0.3, g: 0.4}, composite{ai, Zero, 0.5}, 0.275, 0.65},
		{"too little", reading{d: 0.3, g: 0.4}, composite{ai, Renormalize, 0.5}, absent, 0.3},
		{"too little, zero", reading{d: 0.5}, composite{ai, Zero, 0.5}, 0.1, 0.2},
		{"NVML alone", reading{n: 1}, composite{ai, Renormalize, 0.5}, absent, 0.1},
		{"NVML alone, no minimum", reading{n: 1}, composite{ai, Renormalize, 0}, 1, 0.1},
		{"nothing", reading{}, composite{ai, Renormalize, 0}, absent, 0},
		{"nothing, zero", reading{}, composite{ai, Zero, 0}, absent, 0},
		{"only what has no weight", reading{s: 1}, composite{canonical.Weights{Engine: 1}, Renormalize, 0}, absent, 0},
		{"all that has weight", reading{s: 0.25}, composite{canonical.Weights{SM: 1}, Renormalize, 1}, 0.25, 1},

		// 0.4+0.1 and 0.35+0.15 of the weight, each a hair off 0.5 or not.
		{"at the minimum", reading{d: 0.5, te: 0.5}, composite{mem, Renormalize, 0.5}, 0.5, 0.5},
		{"at the minimum", reading{s: 0.5, g: 0.5}, composite{mem, Renormalize, 0.5}, 0.5, 0.5},
		{"at 0.3", reading{d: 0.5, g: 0.5}, composite{ai, Renormalize, 0.3}, 0.5, 0.3},
		{"at 0.7", reading{s: 0.5, te: 0.5}, composite{ai, Renormalize, 0.7}, 0.5, 0.7},
		{"at 0.9", reading{s: 0.5, te: 0.5, d: 0.5}, composite{ai, Renormalize, 0.9}, 0.5, 0.9},
		{"as far below as rounding gets", reading{s: 0.5}, composite{canonical.Weights{SM: 1 - 1e-9, Engine: 1e-9}, Renormalize, 1}, 0.5, 1 - 1e-9},
		{"farther below", reading{s: 0.5}, composite{canonical.Weights{SM: 1 - 1.05e-9, Engine: 1.05e-9}, Renormalize, 1}, absent, 1 - 1.05e-9},
		{"just below the minimum", reading{d: 0.5, te: 0.5}, composite{mem, Renormalize, 0.500001}, absent, 0.5},
	} {
		percent, coverage := c.c.score(c.r.row())
		util := percent / 100
		if !near(util, c.util) || !near(coverage, c.coverage) || c.coverage == 1 && coverage != 1 {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, util, coverage, c.util, c.coverage)
		}
	}
}

// TestScoreAtEdgeOfIdle takes readings whose score is 5 percent in KempnerPulse's
// arithmetic, or would be without rounding.
func TestScoreAtEdgeOfIdle(t *testing.T) {
	edge := 0
	for _, p := range Presets {
		c := composite{p.Weights, Renormalize, 0.5}
		w := p.Weights
		for sm := range 145 {
			for d := range 50 {
				for g := range 50 {
					x := [...]float64{float64(sm) / 1000, 0.05, float64(d) / 1000, float64(g) / 1000}
					percent := w.SM * (x[0] * 100)
					percent += w.Tensor * (x[1] * 100)
					percent += w.DRAM * (x[2] * 100)
					percent += w.Engine * (x[3] * 100)
					if math.Abs(percent-5) > 1e-9 {
						continue
					}
					edge++
					row := reading{fSM: x[0], fTensor: x[1], fDRAM: x[2], fEngine: x[3]}.row()
					got, _ := c.score(row)
					if got != percent || (got/100 < 0.05) != (percent < 5) {
						t.Fatalf("%s %v: %v percent, want %v", p.Name, x, got, percent)
					}
				}
			}
		}
	}
	if edge < 100 {
		t.Errorf("%d readings at the edge, want 100", edge)
	}
}

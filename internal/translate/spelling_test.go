package translate

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// read reads a number as the comments of Spelling say.
func (s *Spelling) read(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) || slices.ContainsFunc(s.Blanks, func(b Blank) bool { return v >= b.From && v < b.To }) {
		return math.NaN()
	}
	switch v = v * s.Times / s.Per; {
	case v > s.Highest && v <= s.Overshoot:
		return s.Highest
	case v < s.Lowest || v > s.Highest:
		return math.NaN()
	}
	return v
}

// TestSpellingsSayWhatRulesDo reads numbers at the ends of every range as Spellings says and
// by the rules of the Translator.
func TestSpellingsSayWhatRulesDo(t *testing.T) {
	var numbers []float64
	for _, v := range []float64{
		0, 1, 1.1, 57, 100, 101, 110, 200, 1e9, 2147483632, 2147483636, 140737488355328, 140737488355344, 9.2e18, 1 << 63, math.Inf(1),
	} {
		numbers = append(numbers, v, -v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, math.Inf(-1)))
	}
	numbers = append(numbers, math.NaN(), -50, -50.1)
	rules, err := newRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for f := range canonical.NumFields {
		for _, s := range Spellings(f) {
			for _, name := range s.Names {
				names++
				if s.PercentOrRatio {
					continue
				}
				for _, v := range numbers {
					var rep Report
					got, want := s.read(v), rules.byName[name].read(v, &rep)
					if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
						t.Errorf("%s: %v is %v by its spelling, %v by its rule", name, v, got, want)
					}
				}
			}
		}
	}
	for i := range dialect {
		names -= len(dialect[i].Names)
	}
	if names != 0 {
		t.Errorf("Spellings has %+d names compared with the dialect", names)
	}
}

func TestSpellingsPutFallbacksLast(t *testing.T) {
	all := Spellings(canonical.NVMLUtilization)
	if len(all) != 2 || all[0].PercentOrRatio || !all[1].PercentOrRatio || !slices.Equal(all[1].Names, []string{utilRatioName}) {
		t.Errorf("spellings of NVML utilization: %+v", all)
	}
	if s := all[1]; s.Times != 1 || s.Per != 1 || s.Lowest != 0 || s.Highest != 1 || s.Overshoot != 1.1 {
		t.Errorf("a ratio, if it is one: %+v", s)
	}
}

func TestUtilRatioEvidenceNamesSiblings(t *testing.T) {
	siblings := regexp.MustCompile("^(?:" + strings.Join(UtilRatioEvidence(), "|") + ")$")
	for i := range dialect {
		for _, name := range dialect[i].Names {
			if siblings.MatchString(name) != isSibling(name) {
				t.Errorf("%s is a sibling: %v", name, isSibling(name))
			}
		}
	}
}

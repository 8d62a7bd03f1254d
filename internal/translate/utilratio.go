package translate

import (
	"strings"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// In DCGM 4.6 DCGM_FI_DEV_GPU_UTIL_RATIO is another name of field 203, a whole
// number of percent; from 4.7 on it is field 1613, a float from 0 to 1. A lone 1
// may thus be 1 % or 100 %, and each reading has to show which: by its values, by
// families among siblings, or by the HELP text, in which dcgm-exporter's counters
// files say "(in %)" up to 4.8 and "ratio" from 4.9 on.

// unitEvidence is what a reading reveals about the unit of utilRatioName.
type unitEvidence struct {
	above     bool // a value above ratioOvershoot
	overshoot bool // a value above 1, up to ratioOvershoot
	fraction  bool // a value between 0 and 1
	siblings  bool // families that came with the ratio
	help      Unit // the unit in HELP, "" if none
}

// unit weighs the evidence: values prove, everything else only suggests. It is
// "" if nothing suggests a unit or the suggestions contradict each other.
func (e unitEvidence) unit() Unit {
	switch {
	case e.above:
		return Percent
	case e.overshoot && !e.siblings && !e.fraction:
		return Percent
	case e.overshoot || e.fraction:
		return Ratio
	case e.siblings && e.help == Percent:
		return ""
	case e.siblings:
		return Ratio
	}
	return e.help
}

// weigh adds the evidence of a value.
func (e *unitEvidence) weigh(v float64) {
	switch {
	case v > ratioOvershoot:
		e.above = true
	case v > 1:
		e.overshoot = true
	case v > 0 && v < 1:
		e.fraction = true
	}
}

// sibling is families that came with the ratio, by the prefix and suffix of their names, and
// the source of that fact.
type sibling struct{ prefix, suffix, source string }

// siblings leaves out what came with DCGM 4.6.0 or 4.6.1, where the family is still percent:
// the label DCGM_FI_SYSTEM_DRIVER_VERSION, and fields 1600 to 1612 (clocks in hertz, energy
// in joules, the ratio of fan speed).
var siblings = [...]sibling{
	{"DCGM_FI_DEV_FB_", "_BYTES", "fields 1625 to 1628 of DCGM 4.7; absent from the header of 4.6.1"},
	{"DCGM_FI_DEV_MEMORY_UTIL_RATIO", "", "field 1614 of DCGM 4.7; absent from the header of 4.6.1"},
	{"DCGM_FI_DEV_", "ENC_UTIL_RATIO", "field 1615, behind the ratio's own id, 1613; release notes of dcgm-exporter 4.9.0"},
	{"DCGM_FI_DEV_", "DEC_UTIL_RATIO", "field 1616; the same notes"},
	{"DCGM_FI_DEV_GPU_", "_THROTTLE_SECONDS_TOTAL", "fields 1617 to 1624; the same notes"},
	{"DCGM_FI_DEV_NVLINK_THROUGHPUT_", "BYTES_PER_SECOND", "fields 1630 to 1648; the same notes"},
}

// isSibling reports whether a family is one of siblings.
func isSibling(name string) bool {
	for _, s := range siblings {
		if strings.HasPrefix(name, s.prefix) && strings.HasSuffix(name, s.suffix) {
			return true
		}
	}
	return false
}

// unitOfHelp returns the unit that a HELP text names, "" if it names both, as those of the
// profiling fields did. Only whole words count: "duration" contains "ratio".
func unitOfHelp(help string) Unit {
	percent, ratio := strings.Contains(help, "%"), false
	for word := range strings.FieldsFuncSeq(strings.ToLower(help), func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch word {
		case "percent", "percentage", "pct":
			percent = true
		case "ratio", "fraction":
			ratio = true
		}
	}
	switch {
	case percent && !ratio:
		return Percent
	case ratio && !percent:
		return Ratio
	}
	return ""
}

// utilRatio is what a Translator knows about the family utilRatioName.
type utilRatio struct {
	family         int // its id, or -1: see learn
	percent, ratio *rule
	unit           Unit // of the latest reading, "" if that is not known

	// The HELP text last looked at, and the unit it names.
	help   string
	helped Unit
}

func newUtilRatio() utilRatio {
	return utilRatio{
		percent: newRule(canonical.NVMLUtilization, Percent, int(canonical.NVMLUtilization)),
		ratio:   newRule(canonical.NVMLUtilization, Ratio, int(canonical.NVMLUtilization)),
	}
}

// resolveUtil converts the values of utilRatioName, still unread in their fallback column,
// to ratios.
func (t *Translator) resolveUtil(dst *canonical.Frame, d *raw.Dict, rep *Report) {
	if t.util.family < 0 {
		return
	}
	var e unitEvidence
	for i := range dst.Len() {
		e.weigh(*t.cell(dst, i, t.rules.util))
	}
	for _, v := range t.utilRatios {
		e.weigh(v)
	}
	e.siblings = t.hasSibling()
	e.help = t.util.unitOfHelp(d)
	t.util.unit = e.unit()
	for i := range dst.Len() {
		if cell := t.cell(dst, i, t.rules.util); canonical.Given(*cell) {
			*cell = t.util.read(*cell, t.util.unit, rep)
		}
	}
}

// read reads a value in unit. If the unit is unknown, 0 is still 0.
func (u *utilRatio) read(v float64, unit Unit, rep *Report) float64 {
	switch {
	case unit == Percent:
		return u.percent.read(v, rep)
	case unit == Ratio || v <= 0:
		return u.ratio.read(v, rep)
	}
	rep.Dropped[canonical.DropUnitUnknown]++
	return absent
}

func (u *utilRatio) unitOfHelp(d *raw.Dict) Unit {
	if help := d.Family(uint32(u.family)).Help; help != u.help {
		u.help, u.helped = strings.Clone(help), unitOfHelp(help)
	}
	return u.helped
}

// hasSibling reports whether this reading has a family that came with the ratio.
func (t *Translator) hasSibling() bool {
	for i := range t.families {
		if t.families[i].seen && t.families[i].sibling {
			return true
		}
	}
	return false
}

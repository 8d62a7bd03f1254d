package view

import (
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// badge shows a state by a glyph and a word, not only by colour.
type badge struct {
	text  string // at most badgeWidth cells
	style screen.Style
}

// badgeWidth is the width of all badges, so that nothing moves when a state changes.
const badgeWidth = 6

// border returns the style of a card's border in that state, or other if the state is not bad.
func (b badge) border(other screen.Style) screen.Style {
	if st, ok := map[screen.Style]screen.Style{styleCrit: styleCritBorder, styleWarn: styleWarnBorder}[b.style]; ok {
		return st
	}
	return other
}

// healthBadges is indexed by Health.
var healthBadges = [canonical.NumHealth]badge{
	canonical.HealthOK:      {"● OK", styleOK},
	canonical.HealthHot:     {"▲ HOT", styleWarn},
	canonical.HealthWarn:    {"▲ WARN", styleWarn},
	canonical.HealthCrit:    {"✖ CRIT", styleCrit},
	canonical.HealthUnknown: {missing, styleFaint},
}

// goneBadge is the badge of a board that is gone, instanceBadge that of an instance, as health
// is the board's.
var goneBadge, instanceBadge = badge{"✖ GONE", styleCrit}, badge{"MIG", styleLabel}

// glyph returns the badge without its word.
func (b badge) glyph() string {
	_, n := utf8.DecodeRuneInString(b.text)
	return b.text[:n]
}

// badgeOf returns the badge of g.
func badgeOf(g *client.GPU) badge {
	switch {
	case g.Lost():
		return goneBadge
	case g.Gone:
		return healthBadges[canonical.HealthUnknown]
	case g.IsInstance():
		return instanceBadge
	}
	return healthBadges[g.Health]
}

// classLabel shows a class by its name, and in strips by a glyph of its bottleneck.
type classLabel struct {
	client.ClassName
	style screen.Style
	strip rune
}

// longClass and shortClass are the widths of the longest names.
const longClass, shortClass = 20, 9

// classOf returns the label of the class of a device.
func classOf(g *client.GPU) classLabel {
	switch {
	case g.Class != canonical.ClassUnknown:
	case g.Cut:
		return classLabel{client.InMIG, styleLabel, ' '}
	case g.Unprofiled():
		return classLabel{client.BusyByUtil, styleLabel, ' '}
	}
	return classLabels[g.Class]
}

// bottlenecks are the looks of classes by their bottleneck. Strips differ in height and in
// colour; none is as high as a cell, so that they do not merge.
var bottlenecks = map[string]classLabel{
	"compute": {style: styleCompute, strip: '▇'},
	"memory":  {style: styleMemory, strip: '▅'},
	"io":      {style: styleIO, strip: '▃'},
	"mixed":   {style: styleMixed, strip: '─'},
	"idle":    {style: styleIdle, strip: '▁'},
	"unknown": {style: styleFaint, strip: '·'},
}

// classLabels is indexed by Class; NumClasses stands for no reading.
var classLabels = func() (all [canonical.NumClasses + 1]classLabel) {
	for c, info := range canonical.Classes {
		all[c] = bottlenecks[info.Bottleneck]
		all[c].ClassName = client.ClassNames[c]
	}
	all[canonical.NumClasses] = classLabel{style: styleFaint, strip: ' '}
	return all
}()

package view

import "github.com/kpulse/kpulse-proxy/internal/tui/screen"

// The styles, by their meaning. Red is only for failures and yellow only for warnings;
// utilization goes from dim to bright in one hue, because high is good.
const (
	stylePlain    screen.Style = iota // numbers and words
	styleLabel                        // names of numbers
	styleStrong                       // the most important
	styleFaint                        // old, missing or unimportant
	styleTrack                        // the empty part of a bar
	styleBorder                       // of a card
	styleSelected                     // of the selected card
	styleAccent                       // keys, the program's name
	styleOK
	styleWarn
	styleCrit
	styleWarnBorder // of a card whose device is hot or warns
	styleCritBorder // of a card whose device is crit or gone
	styleUtil0      // below 10 %
	styleUtil1      // below 40 %
	styleUtil2      // below 75 %
	styleUtil3      // above
	styleCompute
	styleMemory
	styleIO
	styleMixed
	styleIdle
	styleSeries0 // the lines of a chart
	styleSeries1
	styleSeries2
	styleSeries3
	styleSeries4
	styleSeries5
	styleSeries6
	styleSeries7
	styleBand // the range of the devices of a chart, or the wasted area
	numStyles
)

// numSeries is the number of lines that can be told apart.
const numSeries = 8

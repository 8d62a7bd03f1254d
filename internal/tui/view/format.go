package view

import (
	"math"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// missing stands for a number that was not read, which is never 0.
const missing = "--"

// format returns a number that is not NaN, given in the unit of canonical, in the unit of the
// screen.
type format func(v float64) string

// The widths of usual numbers in a format, in cells.
const (
	widthPercent = 6 // 100.0%
	widthWhole   = 4 // 100%
	widthWatts   = 5 // 1000W
	widthCelsius = 5 // 105°C
	widthGiB     = 6 // 1440.2
	widthRate    = 5 // 12.40, <.01
	widthMHz     = 4 // 1980
	widthEnergy  = 6 // 9999.9
	widthCount   = 6
)

// The formats of fractions as 90.8% and 91%, power as 327W, temperatures as 52°C, memory in GiB as
// 108.4, and clocks in MHz as 1980.
var (
	percent   = decimals(100, 1, "%")
	whole     = decimals(100, 0, "%")
	watts     = decimals(1, 0, "W")
	celsius   = decimals(1, 0, "°C")
	gibibytes = decimals(1.0/(1<<30), 1, "")
	megahertz = decimals(1e-6, 0, "")
)

// decimals returns the format of numbers times scale with a number of decimals.
func decimals(scale float64, digits int, suffix string) format {
	return func(v float64) string { return fixed(v*scale, digits) + suffix }
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// rate formats bytes per second in GB/s of 10⁹ bytes, to three digits, as 12.4. A rate above 0
// never shows as 0.
func rate(v float64) string {
	switch v /= 1e9; {
	case v > 0 && v < 0.005:
		return "<.01"
	case v < 9.995:
		return fixed(v, 2)
	case v < 99.95:
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// kilowattHours formats energy in kWh as 640.9, without decimals from 10,000 on.
func kilowattHours(v float64) string {
	if v /= 3.6e6; v < 9999.95 {
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// count formats a whole number; from a million on as 1.2M.
func count(v float64) string {
	if v < 1e6 {
		return fixed(v, 0)
	}
	return fixed(v/1e6, 1) + "M"
}

// unitFormat is the format of a unit.
type unitFormat struct {
	format format
	width  int
	suffix string // the unit, unless format writes it
}

// unitFormats are the formats of all units that are shown.
var unitFormats = map[canonical.Unit]unitFormat{
	canonical.Ratio:          {percent, widthPercent, ""},
	canonical.Bytes:          {gibibytes, widthGiB, "GiB"},
	canonical.BytesPerSecond: {rate, widthRate, "GB/s"},
	canonical.Watts:          {watts, widthWatts, ""},
	canonical.Joules:         {kilowattHours, widthEnergy, "kWh"},
	canonical.Celsius:        {celsius, widthCelsius, ""},
	canonical.Hertz:          {megahertz, widthMHz, "MHz"},
	canonical.Count:          {count, widthCount, ""},
	canonical.Code:           {count, widthCount, ""},
	canonical.Flag:           {count, widthCount, ""},
	canonical.Seconds:        {count, widthCount, "s"},
}

// AgeText returns a duration in one unit: 12s, 3m, 2h, 4d.
func AgeText(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d >= time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d >= time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// utilStyle returns the brightness of a utilization; faint for NaN.
func utilStyle(v float64) screen.Style {
	switch {
	case math.IsNaN(v):
		return styleFaint
	case v < 0.10:
		return styleUtil0
	case v < 0.40:
		return styleUtil1
	case v < 0.75:
		return styleUtil2
	default:
		return styleUtil3
	}
}

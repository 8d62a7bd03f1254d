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

// format appends a number that is not NaN, given in the unit of canonical, in the
// unit of the screen.
type format func(dst []byte, v float64) []byte

// The widths of usual numbers in a format, in cells.
const (
	widthPercent  = 6 // 100.0%
	widthWhole    = 4 // 100%
	widthWatts    = 5 // 1000W
	widthCelsius  = 5 // 105°C
	widthGiB      = 6 // 1440.2
	widthWholeGiB = 3 // 141
	widthRate     = 5 // 12.40, <0.01
	widthMHz      = 4 // 1980
	widthEnergy   = 6 // 9999.9
	widthCount    = 6
)

// percent formats a fraction as 90.8%.
func percent(dst []byte, v float64) []byte {
	return append(strconv.AppendFloat(dst, v*100, 'f', 1, 64), '%')
}

// whole formats a fraction as 91%.
func whole(dst []byte, v float64) []byte {
	return append(strconv.AppendFloat(dst, v*100, 'f', 0, 64), '%')
}

// watts formats power as 327W.
func watts(dst []byte, v float64) []byte {
	return append(strconv.AppendFloat(dst, v, 'f', 0, 64), 'W')
}

// celsius formats a temperature as 52°C.
func celsius(dst []byte, v float64) []byte {
	return append(strconv.AppendFloat(dst, v, 'f', 0, 64), "°C"...)
}

// gibibytes formats an amount of memory in GiB as 108.4.
func gibibytes(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v/(1<<30), 'f', 1, 64) }

// wholeGiB formats an amount of memory in GiB as 108.
func wholeGiB(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v/(1<<30), 'f', 0, 64) }

// rate formats bytes per second in GB/s of 10⁹ bytes, to three digits, as 12.4. A rate above 0
// never shows as 0.
func rate(dst []byte, v float64) []byte {
	switch v /= 1e9; {
	case v > 0 && v < 0.005:
		return append(dst, "<0.01"...)
	case v < 9.995:
		return strconv.AppendFloat(dst, v, 'f', 2, 64)
	case v < 99.95:
		return strconv.AppendFloat(dst, v, 'f', 1, 64)
	default:
		return strconv.AppendFloat(dst, v, 'f', 0, 64)
	}
}

// megahertz formats a clock in MHz as 1980.
func megahertz(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v/1e6, 'f', 0, 64) }

// kilowattHours formats energy in kWh as 640.9, without decimals from 10,000 on.
func kilowattHours(dst []byte, v float64) []byte {
	if v /= 3.6e6; v < 9999.95 {
		return strconv.AppendFloat(dst, v, 'f', 1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', 0, 64)
}

// count formats a whole number; from a million on as 1.2M.
func count(dst []byte, v float64) []byte {
	if v < 1e6 {
		return strconv.AppendFloat(dst, v, 'f', 0, 64)
	}
	return append(strconv.AppendFloat(dst, v/1e6, 'f', 1, 64), 'M')
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

// axisFormat returns the format of the numbers of an axis.
func axisFormat(u canonical.Unit) format {
	if u == canonical.Ratio {
		return whole
	}
	return unitFormats[u].format
}

// number draws v, or missing for NaN, right-aligned in w cells from x on.
func number(r screen.Rect, x, y, w int, v float64, f format, st screen.Style) {
	if math.IsNaN(v) {
		r.Number(x, y, w, append(r.Scratch(), missing...), styleFaint)
		return
	}
	r.Number(x, y, w, f(r.Scratch(), v), st)
}

// age appends a duration in one unit: 12s, 3m, 2h, 4d.
func age(dst []byte, d time.Duration) []byte {
	for _, unit := range [...]struct {
		of   time.Duration
		name byte
	}{{24 * time.Hour, 'd'}, {time.Hour, 'h'}, {time.Minute, 'm'}} {
		if d >= unit.of {
			return append(strconv.AppendInt(dst, int64(d/unit.of), 10), unit.name)
		}
	}
	return append(strconv.AppendInt(dst, int64(d/time.Second), 10), 's')
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

// AgeText returns a duration in one unit.
func AgeText(d time.Duration) string { return string(age(nil, d)) }

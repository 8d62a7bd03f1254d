package translate

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Unit is the unit of a family's numbers.
type Unit string

// The units of the dialects. percentOrRatio is Percent or Ratio, determined for each
// reading.
const (
	Ratio           Unit = "ratio"
	Percent         Unit = "percent"
	percentOrRatio  Unit = "percent or ratio"
	Bytes           Unit = "bytes"
	MiB             Unit = "MiB"
	BytesPerSecond  Unit = "bytes per second"
	NVLinkMegabytes Unit = "MB/s of 1000 KiB"
	Watts           Unit = "watts"
	Milliwatts      Unit = "milliwatts"
	Joules          Unit = "joules"
	Millijoules     Unit = "millijoules"
	Microjoules     Unit = "microjoules"
	Celsius         Unit = "degrees Celsius"
	Hertz           Unit = "hertz"
	Megahertz       Unit = "megahertz"
	Seconds         Unit = "seconds"
	Nanoseconds     Unit = "nanoseconds"
	Number          Unit = "number"
)

// blanks are the ranges of numbers by which the vendor means no value (DCGM's
// dcgm_structs.h). Which of them can occur depends on how a field is stored.
type blanks uint8

const (
	int32Blanks blanks = 1 << iota // 2147483632 … 2147483635
	int64Blanks                    // 9223372036854775792 …, 2^63 as a float
	fp64Blanks                     // 140737488355328 … 140737488355343
	zeroBlank                      // 0
)

// The ranges of blanks; the upper ends are not blank. Everything from firstInt64Blank on is
// blank, since other writers may round the blanks of int64.
const (
	firstInt32Blank, afterInt32Blanks = 2147483632, 2147483636
	firstFP64Blank, afterFP64Blanks   = 140737488355328, 140737488355344
	firstInt64Blank                   = 9.2e18
	afterZeroBlank                    = math.SmallestNonzeroFloat64
)

// The blanks of a field by how it is stored. A counter that may reach any whole number, such
// as of bytes or millijoules, passes through the 32-bit and the float blanks.
const (
	small = int64Blanks | int32Blanks
	wide  = int64Blanks
	float = int64Blanks | fp64Blanks
)

// ratioOvershoot is the highest number that still counts as a ratio of 1: the hardware's
// counters are not sampled at exactly the same time.
const ratioOvershoot = 1.1

// unitInfo converts numbers of a unit to SI, as value × times / per. Dividing keeps
// 57 % at 0.57, which multiplying by 0.01 does not.
type unitInfo struct {
	si         []canonical.Unit // the SI units that it converts to
	times, per float64
	// overshoot is the largest SI value that still counts as the highest of its
	// field; 0 if nothing above that does.
	overshoot float64
	blanks    blanks
}

var units = map[Unit]unitInfo{
	Ratio:           {[]canonical.Unit{canonical.Ratio}, 1, 1, ratioOvershoot, float},
	Percent:         {[]canonical.Unit{canonical.Ratio}, 1, 100, 0, small},
	percentOrRatio:  {[]canonical.Unit{canonical.Ratio}, 1, 1, 0, small | float},
	Bytes:           {[]canonical.Unit{canonical.Bytes}, 1, 1, 0, wide},
	MiB:             {[]canonical.Unit{canonical.Bytes}, 1 << 20, 1, 0, small},
	BytesPerSecond:  {[]canonical.Unit{canonical.BytesPerSecond}, 1, 1, 0, float},
	NVLinkMegabytes: {[]canonical.Unit{canonical.BytesPerSecond}, 1000 * 1024, 1, 0, float},
	Watts:           {[]canonical.Unit{canonical.Watts}, 1, 1, 0, float},
	Milliwatts:      {[]canonical.Unit{canonical.Watts}, 1, 1000, 0, small},
	Joules:          {[]canonical.Unit{canonical.Joules}, 1, 1, 0, wide},
	Millijoules:     {[]canonical.Unit{canonical.Joules}, 1, 1000, 0, wide},
	Microjoules:     {[]canonical.Unit{canonical.Joules}, 1, 1e6, 0, wide},
	Celsius:         {[]canonical.Unit{canonical.Celsius}, 1, 1, 0, small},
	Hertz:           {[]canonical.Unit{canonical.Hertz}, 1, 1, 0, wide},
	Megahertz:       {[]canonical.Unit{canonical.Hertz}, 1e6, 1, 0, small},
	Seconds:         {[]canonical.Unit{canonical.Seconds}, 1, 1, 0, float},
	Nanoseconds:     {[]canonical.Unit{canonical.Seconds}, 1, 1e9, 0, wide},
	Number:          {[]canonical.Unit{canonical.Count, canonical.Flag, canonical.Code, canonical.Bitmask}, 1, 1, 0, small},
}

// fieldBlanks are further blanks of a field, in any unit. A board without a sensor in its
// memory gives 0, since the host engine does not check that the driver gave a value
// (NVIDIA/DCGM#311, NVIDIA/dcgm-exporter#460; seen on T4 and L4). No working memory is
// that cold.
var fieldBlanks = map[canonical.Field]blanks{
	canonical.MemoryTemperature: zeroBlank,
}

// blanksOf returns the blanks of a field in a unit.
func blanksOf(field canonical.Field, unit Unit) blanks {
	return units[unit].blanks | fieldBlanks[field]
}

// in reports whether v, as the source wrote it, is one of the blanks b.
func (b blanks) in(v float64) bool {
	switch {
	case v < firstInt32Blank: // as nearly all are
		return v == 0 && b&zeroBlank != 0
	case v >= firstInt64Blank:
		return b&int64Blanks != 0
	case v >= firstFP64Blank && v < afterFP64Blanks:
		return b&fp64Blanks != 0
	case v < afterInt32Blanks:
		return b&int32Blanks != 0
	}
	return false
}

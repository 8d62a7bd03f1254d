package screen

import (
	"math"
	"strconv"
)

var notGiven = math.NaN()

func appendInt(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

package dcgm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAppendValue(t *testing.T) {
	tests := []struct {
		v     float64
		float bool
		want  string
	}{
		{0, true, "0.000000"}, {0.987, true, "0.987000"}, {1, true, "1.000000"},
		{-0.125, true, "-0.125000"}, {412.337, true, "412.337000"}, {140737488355327, true, "140737488355327"}, {123456789012, true, "123456789012.000000"}, {1e18, true, "1000000000000000000"}, {0.1234567, true, "0.1234567"},
		{1e-9, true, "0.000000001"}, {1e-10, true, "1e-10"}, {9223372036854776, true, "9223372036854776"}, {9007199254740.991, true, "9007199254740.99"}, // the same float64

		{0, false, "0"}, {97, false, "97"}, {-7, false, "-7"}, {123456789012, false, "123456789012"}, {0.5, false, "0.5"},
		{1 << 62, false, "4611686018427388000"}, {1 << 63, false, "9223372036854776000"}, {-(1 << 63), false, "-9223372036854776000"}, {1e300, false, strconv.FormatFloat(1e300, 'f', -1, 64)},
	}
	for _, tt := range tests {
		if got := string(appendValue(nil, tt.v, tt.float)); got != tt.want {
			t.Errorf("%v, %v: %s, want %s", tt.v, tt.float, got, tt.want)
		}
	}
}

// Whatever dmon printed reads back as the same number, in the exporter's form.
func TestValuesReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		printed := fmt.Sprintf("%d.%03d", rng.Uint64()>>(20+rng.IntN(44)), rng.IntN(1000))
		v, err := strconv.ParseFloat(printed, 64)
		if err != nil {
			t.Fatal(err)
		}
		got := string(appendValue(nil, v, true))
		if back, _ := strconv.ParseFloat(got, 64); back != v {
			t.Fatalf("%s became %s", printed, got)
		}
		if v < 1<<30 && got != strconv.FormatFloat(v, 'f', 6, 64) {
			t.Fatalf("%s became %s, the exporter writes %f", printed, got, v)
		}
		n := float64(rng.Int64() >> rng.IntN(63))
		if back, _ := strconv.ParseFloat(string(appendValue(nil, n, false)), 64); back != n {
			t.Fatalf("%v became %v", n, back)
		}
	}
}

func sortedLines(s string) []string { return slices.Sorted(strings.Lines(s)) }

package exposition

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestPlainDecimalRounds compares the plain form with strconv. If numbers of many
// digits were not left to strconv, most of them would be wrong.
func TestPlainDecimalRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 20_000 {
		text := strings.Repeat("0", rng.IntN(12)) + strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10)
		point := rng.IntN(len(text) + 1)
		text = text[:point] + "." + text[point:]
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, end := plainDecimal(text, 0)
		if end == 0 {
			continue
		}
		if plain++; got != want || end != len(text) {
			t.Errorf("%s: got %v up to %d, want %v", text, got, end, want)
		}
	}
	if plain < 10_000 {
		t.Errorf("only %d of 20000 numbers were read as plain", plain)
	}
	if got, end := plainDecimal(".0000000000000000012", 0); end != 20 || got != 1.2e-18 {
		t.Errorf("19 decimals: got %v up to %d", got, end)
	}
}

package exposition

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestPlainDecimalRounds compares the plain form with strconv. If numbers of many
// digits were not left to strconv, most of them would be wrong.
func TestPlainDecimalRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 20_000 {
		text := strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10)
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
}

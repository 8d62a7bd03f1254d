package e2etest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Seeded returns the amount and the seed of a random test from a variable of the environment,
// which is AMOUNT or AMOUNT:SEED; parse reads the amount. Without the variable the amount is
// standard, and without a seed the seed is random. The error shows example as an amount.
func Seeded[T any](t testing.TB, variable string, standard T, parse func(string) (T, error), example string) (amount T, seed uint64) {
	t.Helper()
	seed = rand.Uint64()
	text := os.Getenv(variable)
	if text == "" {
		return standard, seed
	}
	before, after, seeded := strings.Cut(text, ":")
	amount, err := parse(before)
	if seeded && err == nil {
		seed, err = strconv.ParseUint(after, 10, 64)
	}
	if err != nil {
		t.Fatalf("%s=%s: %v; give an amount such as %s, or %s:SEED", variable, text, err, example, example)
	}
	return amount, seed
}

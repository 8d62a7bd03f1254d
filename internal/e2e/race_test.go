//go:build race

package e2e

// raceDetector reports whether this test was built with it.
const raceDetector = true

//go:build race

package e2e

// raceDetector tells whether this test was built with it.
const raceDetector = true

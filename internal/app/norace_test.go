//go:build !race

package app

// raceDetector tells whether this test was built with it.
const raceDetector = false

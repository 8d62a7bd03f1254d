//go:build race

package main

// raceDetector tells whether this test was built with it.
const raceDetector = true

// Package faults is the fault suite: what the program does when its surroundings or its input
// break. Each row of its tables is a fault that befalls a running program or one that starts.
// `make faults` runs them. The package has only
// tests.
package faults

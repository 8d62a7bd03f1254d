// Package e2e holds the tests of the whole program. They run it as its users do: as a
// child process in front of an exporter, a fake dcgmi or a fake driver, behind a real
// Prometheus, or in a terminal.
package e2e

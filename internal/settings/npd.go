package settings

import (
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// NPDLevel is the level that node-problem-detector treats as a problem.
type NPDLevel uint8

const (
	NpdOff NPDLevel = iota
	npdCrit
	npdWarn
)

var npdWords = [...]string{NpdOff: "", npdCrit: "crit", npdWarn: "warn"}

// Set implements kingpin.Value.
func (l *NPDLevel) Set(text string) error {
	for level, word := range npdWords {
		if word == text && word != "" {
			*l = NPDLevel(level)
			return nil
		}
	}
	return fmt.Errorf("%q is not a level; write crit or warn", text)
}

// String implements kingpin.Value.
func (l NPDLevel) String() string { return npdWords[l] }

// Exit returns node-problem-detector's code for a state: 0 for no problem, 1 for a problem, 2 for
// unknown.
func (l NPDLevel) Exit(state canonical.Health) int {
	switch {
	case state == canonical.HealthUnknown:
		return 2
	case state == canonical.HealthCrit || l == npdWarn && state != canonical.HealthOK:
		return 1
	}
	return 0
}

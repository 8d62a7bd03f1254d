package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// spelling is a flag of KempnerPulse that ours go by another name for.
type spelling struct {
	theirs string
	// ours replaces it, with the value that it was given if ours takes one.
	ours string
	// refusal is why there is none, and what to do.
	refusal string
}

var spellings = []spelling{
	{theirs: "--ai-weights", ours: "--preset=ai"},
	{theirs: "--hpc-weights", ours: "--preset=hpc"},
	{theirs: "--mem-weights", ours: "--preset=mem"},
	{theirs: "--focus-gpu", ours: "--tui.focus"},
	{theirs: "--history", refusal: "--history is a flag of KempnerPulse: the dashboard keeps the readings of six hours, and :window chooses how much of them it shows; leave it out"},
}

// respell returns a command line of KempnerPulse in our words. The slice that it was
// given stays as it is.
func respell(args []string) ([]string, error) {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, value, has := strings.Cut(arg, "=")
		at := slices.IndexFunc(spellings, func(s spelling) bool { return s.theirs == name })
		switch {
		case at < 0:
			var err error
			if args[i], err = valued(arg); err != nil {
				return nil, err
			}
		case spellings[at].refusal != "":
			return nil, errors.New(spellings[at].refusal)
		case has:
			args[i] = spellings[at].ours + "=" + value
		default:
			args[i] = spellings[at].ours
		}
	}
	return bareExport(args), nil
}

// valued gives a flag without a value the one that it then has, and writes one that is on or
// off as kingpin takes it, which knows no value of such a flag.
func valued(arg string) (string, error) {
	name, value, has := strings.Cut(arg, "=")
	for i := range settings {
		s := &settings[i]
		if name != "--"+s.flag {
			continue
		}
		if !has && s.bare != "" {
			return arg + "=" + s.bare, nil
		}
		if f := (&givenFlag{setting: s}); !has || !f.IsBoolFlag() {
			break
		}
		on := false
		if err := assign(&on, value); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if !on {
			name = "--no-" + s.flag
		}
		return name, nil
	}
	return arg, nil
}

package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// spelling is a flag of KempnerPulse that has another name here.
type spelling struct {
	theirs string
	// ours replaces it, with its value if it has one.
	ours string
	// refusal is why there is no such flag, and what to do.
	refusal string
}

var spellings = []spelling{
	{theirs: "--ai-weights", ours: "--preset=ai"},
	{theirs: "--hpc-weights", ours: "--preset=hpc"},
	{theirs: "--mem-weights", ours: "--preset=mem"},
	{theirs: "--focus-gpu", ours: "--tui.focus"},
	{theirs: "--history", refusal: "--history is a flag of KempnerPulse: the dashboard keeps the readings of six hours, and :window chooses how much of them it shows; leave it out"},
}

// respell returns a command line of KempnerPulse with our flags. It does not change args.
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

// valued adds the value that a flag without one stands for, and turns --flag=true and =false
// into --flag and --no-flag, as kingpin accepts no value for boolean flags.
func valued(arg string) (string, error) {
	name, value, has := strings.Cut(arg, "=")
	for i := range table {
		s := &table[i]
		if name != "--"+s.Flag {
			continue
		}
		if !has && s.bare != "" {
			return arg + "=" + s.bare, nil
		}
		if f := (&givenFlag{Setting: s}); !has || !f.IsBoolFlag() {
			break
		}
		on := false
		if err := assign(&on, value); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if !on {
			name = "--no-" + s.Flag
		}
		return name, nil
	}
	return arg, nil
}

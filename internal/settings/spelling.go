package settings

import (
	"fmt"
	"slices"
	"strings"
)

// spellings are flags of KempnerPulse, and what they are called here.
var spellings = map[string]string{"--ai-weights": "--preset=ai", "--hpc-weights": "--preset=hpc", "--mem-weights": "--preset=mem", "--focus-gpu": "--tui.focus"}

// respell returns a command line in the form that kingpin reads: with our own spellings, and with the
// values of flags that are given without one. It does not change args.
func respell(args []string) (_ []string, err error) {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, value, has := strings.Cut(arg, "=")
		if ours := spellings[name]; ours != "" {
			args[i] = strings.Replace(arg, name, ours, 1)
			continue
		}
		at := slices.IndexFunc(table, func(s setting) bool { return s.Flag != "" && name == "--"+s.Flag })
		switch isLast := i+1 == len(args) || strings.HasPrefix(args[i+1], "-"); {
		case at < 0:
		case !has && table[at].bare != "" && isLast:
			args[i] = arg + "=" + table[at].bare
		case has && (&givenFlag{Setting: &table[at]}).IsBoolFlag(): // kingpin has --flag and --no-flag
			on := false
			if err := assign(&on, value); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if args[i] = name; !on {
				args[i] = "--no-" + table[at].Flag
			}
		}
	}
	return args, nil
}

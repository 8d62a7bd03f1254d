package fake

import (
	"fmt"
	"slices"
	"strconv"
)

// option is one of a subsystem.
type option struct {
	short, long string
	value       bool // it has one
	number      bool // which must be a whole number
}

// name returns the option as the real parser calls it in errors.
func (o option) name() string {
	if o.short == "" {
		return fmt.Sprintf("(--%s)", o.long)
	}
	return fmt.Sprintf("-%s (--%s)", o.short, o.long)
}

// usageError is a command line that the parser refuses.
type usageError struct{ message, arg string }

// Error returns what dcgmi prints, without the final line.
func (e usageError) Error() string {
	if e.arg == "" {
		return fmt.Sprintf("Error: %s.", e.message)
	}
	return fmt.Sprintf("Error: %s for arg %s.", e.message, e.arg)
}

// parseOptions returns the values of the options in args by their long names; a
// switch that is set has "".
func parseOptions(args []string, options []option) (map[string]string, error) {
	set := map[string]string{}
	for i := 0; i < len(args); i++ {
		at := slices.IndexFunc(options, func(o option) bool {
			return args[i] == "--"+o.long || o.short != "" && args[i] == "-"+o.short
		})
		if at < 0 {
			return nil, usageError{"Couldn't find match for argument", args[i]}
		}
		o, value := options[at], ""
		if o.value {
			if i++; i == len(args) {
				return nil, usageError{"Missing a value for this argument!", o.name()}
			}
			value = args[i]
		}
		if _, err := strconv.Atoi(value); o.number && err != nil {
			return nil, usageError{fmt.Sprintf("Couldn't read argument value from string '%s'", value), o.name()}
		}
		if _, twice := set[o.long]; twice {
			return nil, usageError{"Argument already set!", o.name()}
		}
		set[o.long] = value
	}
	return set, nil
}

package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/selection"
)

// parseColumns reads --export.
func (o *Options) parseColumns(spec string) (err error) {
	o.Columns, err = export.ParseColumns(spec, selection.JobNames())
	if unknown, ok := errors.AsType[*export.UnknownColumns](err); ok {
		return withNearest(unknown)
	}
	return err
}

// withNearest adds to an error about unknown columns those that were probably meant: the nearest
// name, else a few that contain the word.
func withNearest(e *export.UnknownColumns) error {
	const few = 4
	var meant []string
	for _, name := range e.Names {
		word := strings.Trim(name, `"`)
		near := slices.DeleteFunc(slices.Clone(e.Known), func(column string) bool { return !strings.Contains(column, strings.ToLower(word)) })
		if best := diag.Nearest(word, e.Known); best != "" {
			near = []string{best}
		}
		meant = append(meant, near[:min(len(near), few)]...)
	}
	if slices.Sort(meant); len(meant) == 0 {
		return e
	}
	return fmt.Errorf("%w; did you mean %s?", e, strings.Join(slices.Compact(meant), " or "))
}

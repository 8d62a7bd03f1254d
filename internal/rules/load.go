package rules

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxFile is the largest file to read, in bytes: some twenty thousand rules.
const maxFile = 4 << 20

// Options are the limits for rules.
type Options struct {
	// Window is how far back rules can see; 0 is no limit.
	Window time.Duration
	// Served are the names of the families that the proxy serves, all with
	// canonical.Prefix: a rule should select no others with that prefix. If empty, any
	// are allowed.
	Served []string
	// ForPrometheus is set for files that Prometheus evaluates. Mistakes that matter only
	// in the proxy are then warnings: names that collide with the proxy's or that the text
	// format does not allow, a reach beyond the window, an interval below MinInterval. A
	// series with the proxy's prefix that the proxy does not serve is then an error,
	// otherwise a warning.
	ForPrometheus bool
}

// Load reads the files that the patterns name, each once. A pattern is a file, or a glob of
// filepath.Match; one that names no file is a problem. The set has the valid groups and
// rules, so it is complete only if the problems do not Refuse it; there may be warnings
// even then.
func Load(opts Options, patterns ...string) (*Set, diag.Problems) {
	files, problems := expand(patterns)
	l := &loader{opts: opts, set: &Set{}, recorded: map[string]bool{}}
	for _, file := range files {
		body, err := diag.Read(file, "rule file", maxFile)
		if err != nil {
			l.reader(file).note(diag.Problem{Text: strings.TrimPrefix(err.Error(), file+": ")})
			continue
		}
		l.reader(file).read(body)
	}
	return l.set, append(problems, l.problems()...)
}

// loader is the state that the readers of all files share.
type loader struct {
	opts     Options
	set      *Set
	recorded map[string]bool // names that any rule records
	readers  []*reader
}

// reader returns a reader for the next file.
func (l *loader) reader(file string) *reader {
	r := &reader{loader: l, file: file, groups: map[string]int{}}
	l.set.Files = append(l.set.Files, file)
	l.readers = append(l.readers, r)
	return r
}

// problems returns the problems of all files. It comes last, since it needs the names that
// all files record.
func (l *loader) problems() (all diag.Problems) {
	l.lintOrder()
	for _, r := range l.readers {
		r.lintMentions()
		slices.SortStableFunc(r.findings, func(a, b finding) int { return cmp.Compare(a.Line, b.Line) })
		all = append(all, folded(r.findings)...)
	}
	return all
}

// expand returns the files that the patterns name.
func expand(patterns []string) (files []string, problems diag.Problems) {
	for _, pattern := range patterns {
		named := []string{pattern}
		if _, err := os.Lstat(pattern); err != nil && strings.ContainsAny(pattern, `*?[\`) {
			named, err = glob(pattern)
			if err != nil {
				problems = append(problems, diag.Problem{File: pattern, Text: err.Error()})
			}
		}
		for _, file := range named {
			if file = filepath.Clean(file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, problems
}

// glob returns the files, without directories, that a pattern names: at least one.
func glob(pattern string) ([]string, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("is not a pattern of file names: %w; close the bracket, or put a \\ before it", err)
	}
	files := slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("names no file; check it with ls %s", pattern)
	}
	return files, nil
}

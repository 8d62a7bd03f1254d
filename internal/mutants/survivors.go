package main

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// explained is survivors.csv: directory and name of each mutant that no test can kill, and the
// reason why it is equivalent.
//
//go:embed survivors.csv
var explained string

// explanation is a line of survivors.csv.
type explanation struct{ dir, name, reason string }

func readExplanations(text string) (all []explanation, err error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("survivors.csv: %w", err)
	}
	for i, r := range records[1:] {
		if len(r) != 3 || r[2] == "" {
			return nil, fmt.Errorf("survivors.csv: line %d: want the directory, the name and the reason", i+2)
		}
		all = append(all, explanation{r[0], r[1], r[2]})
	}
	return all, nil
}

// explains reports whether there is an explanation for a survivor.
func (c *campaign) explains(r result) bool {
	return slices.ContainsFunc(c.explained, func(e explanation) bool { return e.dir == r.dir && e.name == r.name() })
}

// verdict returns nil if each tried mutant is killed, or explained and not killed.
func (c *campaign) verdict() (err error) {
	for _, r := range c.results {
		known := c.explains(r)
		switch {
		case r.verdict == survived && !known:
			err = errors.Join(err, fmt.Errorf("survived: %s %s", r.dir, r.name()))
		case r.verdict == killed && known:
			err = errors.Join(err, fmt.Errorf("survivors.csv explains a mutant that is killed: %s %s", r.dir, r.name()))
		}
	}
	return err
}

// strayed returns explanations of a directory's mutants that no longer exist.
func strayed(all []explanation, dir string, mutants []*mutant) (stray []explanation) {
	for _, e := range all {
		if e.dir == dir && !slices.ContainsFunc(mutants, func(m *mutant) bool { return m.name() == e.name }) {
			stray = append(stray, e)
		}
	}
	return stray
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// verdict is the outcome of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	refusal  verdict = "refused" // by the compiler
	open     verdict = "open"    // not tried, or only by the quickest tests

	equivalent verdict = "equivalent" // on the page: survived or open, with an explanation
)

// result is the verdict on a mutant of a package.
type result struct {
	dir string
	*mutant
	verdict verdict
}

// campaign is one call of the program.
type campaign struct {
	root           string
	which          *regexp.Regexp
	jobs           int
	remembered     string
	list, verbose  bool
	own            bool          // run only the tests of the mutated package
	most           time.Duration // maximum CPU time of a test
	stdout, stderr io.Writer

	memory    memory
	explained []explanation
	last      verdict // for survivors of the current suite; "" if more suites follow
	sources   string  // fingerprint of the current target
	commit    string  // of the tree, "" if not known
	tried     []target
	results   []result
}

// run tries the mutants of the targets.
func (c *campaign) run(ctx context.Context, chosen []target) (err error) {
	if c.root, err = filepath.Abs(c.root); err != nil {
		return err
	}
	if c.explained, err = readExplanations(explained); err != nil {
		return err
	}
	if err := c.memory.open(c.remembered); err != nil {
		return err
	}
	defer c.memory.close()
	c.commit = commit(ctx, c.root)
	for _, t := range chosen {
		if err := c.target(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.dir, err)
		}
		c.tried = append(c.tried, t)
	}
	return nil
}

// target tries the mutants of a target.
func (c *campaign) target(ctx context.Context, t target) error {
	p, err := load(ctx, filepath.Join(c.root, t.dir))
	if err != nil {
		return err
	}
	all, err := derive(p, t)
	if err != nil {
		return err
	}
	if c.sources, err = fingerprint(ctx, c.root, t); err != nil {
		return err
	}
	var switched, together, alone []*mutant
	for _, m := range all {
		if !m.alone {
			switched = append(switched, m)
		}
		switch {
		case c.list:
			if c.which.MatchString(m.name()) {
				fmt.Fprintln(c.stdout, t.dir, m.name())
			}
		case c.memory.of(t.dir, c.sources, m) == killed || !c.which.MatchString(m.name()):
			c.results = append(c.results, result{t.dir, m, c.memory.of(t.dir, c.sources, m)})
		case m.alone:
			alone = append(alone, m)
		default:
			together = append(together, m)
		}
	}
	if len(together)+len(alone) == 0 {
		return nil
	}
	slices.SortStableFunc(together, byOperator)
	slices.SortStableFunc(alone, byOperator)
	begin := time.Now()
	if err := c.attempt(ctx, t, p, switched, together, alone); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "%s: %d mutants tried in %v\n", t.dir, len(together)+len(alone), time.Since(begin).Round(time.Second))
	return nil
}

// byOperator orders mutants as in the table of operators: an interrupted campaign has tried all of
// the first ones.
func byOperator(a, b *mutant) int {
	rank := func(m *mutant) int {
		return slices.IndexFunc(operators, func(o operator) bool { return o.name == m.operator })
	}
	return rank(a) - rank(b)
}

// attempt tries mutants on one suite after another: those with switches in a common build, the
// others in a build each.
func (c *campaign) attempt(ctx context.Context, t target, p *pkg, switched, together, alone []*mutant) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &build{root: c.root, dir: dir, p: p, mutants: switched}
	c.last = ""
	suites, last := t.suites, survived
	if c.own {
		suites, last = suites[:1], open
	}
	for i, name := range suites {
		if i == len(suites)-1 {
			c.last = last
		}
		s, err := c.suite(ctx, b, name)
		if err != nil {
			return err
		}
		if i == 0 {
			together = c.withoutRefused(t, b, together)
		}
		if together, err = c.try(ctx, t, s, together); err != nil {
			return err
		}
		if alone, err = c.tryAlone(ctx, t, p, s, alone); err != nil {
			return err
		}
		if len(together)+len(alone) == 0 {
			break
		}
	}
	return nil
}

// suite builds a suite and calibrates its tests. Mutants that the compiler refuses are removed from
// the build.
func (c *campaign) suite(ctx context.Context, b *build, dir string) (*suite, error) {
	binary, err := b.binary(ctx, dir)
	for err != nil {
		blamed := b.blamed(err)
		if len(blamed) == 0 || ctx.Err() != nil {
			return nil, err
		}
		if c.verbose {
			fmt.Fprintln(c.stderr, err)
		}
		b.mutants = slices.DeleteFunc(b.mutants, func(m *mutant) bool { return slices.Contains(blamed, m) })
		binary, err = b.binary(ctx, dir)
	}
	s := &suite{dir: filepath.Join(b.root, dir), binary: binary, most: c.most, killers: map[string]string{}}
	if err := s.calibrate(ctx); err != nil {
		return nil, err
	}
	if len(s.broken) > 0 {
		fmt.Fprintf(c.stderr, "%s: leaving out %s, which fail or take too long with the switches\n", dir, strings.Join(s.broken, ", "))
	}
	return s, nil
}

// withoutRefused returns the mutants in the build, and records the others.
func (c *campaign) withoutRefused(t target, b *build, mutants []*mutant) (in []*mutant) {
	for _, m := range mutants {
		if slices.Contains(b.mutants, m) {
			in = append(in, m)
		} else {
			c.note(t, m, refusal, "the compiler")
		}
	}
	return in
}

// try runs the tests on each of the mutants, and returns those that survive.
func (c *campaign) try(ctx context.Context, t target, s *suite, mutants []*mutant) (survivors []*mutant, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan *mutant)
	for range c.jobs {
		wg.Go(func() {
			for m := range next {
				m.differs += len(slices.Concat(s.groups(m)...))
				killer, failed := s.kills(ctx, m)
				mu.Lock()
				switch {
				case errors.Is(failed, errUnclear):
					c.note(t, m, open, failed.Error())
				case failed != nil:
					err = errors.Join(err, failed)
				case killer != "":
					c.note(t, m, killed, filepath.Base(s.dir)+"."+killer)
				case c.last != "":
					c.note(t, m, c.last, fmt.Sprintf("it makes a difference in %d tests", m.differs))
				default:
					survivors = append(survivors, m)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	wg.Wait()
	slices.SortStableFunc(survivors, byOperator)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return survivors, err
}

// tryAlone does so for mutants without a switch, in a build each.
func (c *campaign) tryAlone(ctx context.Context, t target, p *pkg, s *suite, mutants []*mutant) (survivors []*mutant, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, m := range mutants {
		b := &build{root: c.root, dir: dir, p: p, mutants: []*mutant{m}}
		pkgdir, err := filepath.Rel(c.root, s.dir)
		if err != nil {
			return nil, err
		}
		binary, err := b.binary(ctx, pkgdir)
		if v := compiled(err); v != "" {
			c.note(t, m, v, "the compiler")
			continue
		}
		if err != nil {
			return nil, err
		}
		more, err := c.try(ctx, t, s.alike(binary), b.mutants)
		if err != nil {
			return nil, err
		}
		survivors = append(survivors, more...)
	}
	return survivors, nil
}

// compiled returns the compiler's verdict on the only mutant of a build: it refuses the program or,
// for example for an index of a constant, only a test; "" if it does neither.
func compiled(err error) verdict {
	r, is := errors.AsType[*refused](err)
	if !is {
		return ""
	}
	found := complaint.FindAllStringSubmatch(r.text, -1)
	switch {
	case len(found) == 0: // such as a linker without memory
		return ""
	case slices.ContainsFunc(found, func(line []string) bool { return !strings.HasSuffix(line[1], "_test.go") }):
		return refusal
	}
	return killed
}

// note records a result and its reason. Mutants that are not killed are reported immediately.
func (c *campaign) note(t target, m *mutant, v verdict, why string) {
	c.results = append(c.results, result{t.dir, m, v})
	c.memory.add(t.dir, c.sources, m, v, why)
	if v != killed {
		fmt.Fprintf(c.stderr, "%s: %s %s; %s\n", v, t.dir, m.name(), why)
	}
}

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

// verdict is what became of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	refusal  verdict = "refused" // by the compiler
	open     verdict = "open"    // not tried, or by the quickest tests alone

	equivalent verdict = "equivalent" // on the page: survived or open, and explained
)

// result is the verdict on one of a package.
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
	tests          string // those of the first ring to run; "" for all
	stdout, stderr io.Writer

	memory    memory
	explained []explanation
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
	for _, t := range chosen {
		if err := c.target(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.dir, err)
		}
		c.tried = append(c.tried, t)
	}
	return nil
}

// target tries those of one.
func (c *campaign) target(ctx context.Context, t target) error {
	p, err := load(ctx, filepath.Join(c.root, t.dir))
	if err != nil {
		return err
	}
	all, err := derive(p)
	if err != nil {
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
		case c.memory.killed(t.dir, m):
			c.results = append(c.results, result{t.dir, m, killed})
		case !c.which.MatchString(m.name()):
			c.results = append(c.results, result{t.dir, m, open})
		case m.alone:
			alone = append(alone, m)
		default:
			together = append(together, m)
		}
	}
	begin := time.Now()
	if err := c.attempt(ctx, t, p, together, switched); err != nil {
		return err
	}
	for _, m := range alone {
		if err := c.attempt(ctx, t, p, []*mutant{m}, []*mutant{m}); err != nil {
			return err
		}
	}
	if !c.list {
		fmt.Fprintf(c.stderr, "%s: %d mutants tried in %v\n", t.dir, len(together)+len(alone), time.Since(begin).Round(time.Second))
	}
	return nil
}

// attempt builds some of the mutants together, and tries these.
func (c *campaign) attempt(ctx context.Context, t target, p *pkg, mutants, built []*mutant) error {
	if len(mutants) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &build{root: c.root, dir: dir, p: p, mutants: built, alone: built[0].alone}
	rings := t.rings
	if c.tests != "" {
		rings = rings[:1]
	}
	for i, ring := range rings {
		suites, err := c.suites(ctx, b, ring)
		if err != nil {
			return err
		}
		if i == 0 {
			mutants = c.withoutRefused(t, b, mutants)
		}
		survivors, err := c.try(ctx, t, suites, mutants)
		if err != nil {
			return err
		}
		if mutants = survivors; len(mutants) == 0 {
			break
		}
	}
	last := survived
	if c.tests != "" {
		last = open
	}
	for _, m := range mutants {
		c.note(t, m, last)
	}
	return nil
}

// suites builds those of a ring. Mutants that the compiler refuses leave the build.
func (c *campaign) suites(ctx context.Context, b *build, ring []string) (suites []*suite, err error) {
	if err := b.write(); err != nil {
		return nil, err
	}
	for _, dir := range ring {
		s, err := c.newSuite(ctx, b, dir)
		for err != nil {
			blamed := b.blamed(err)
			if len(blamed) == 0 || ctx.Err() != nil {
				return nil, err
			}
			b.mutants = slices.DeleteFunc(b.mutants, func(m *mutant) bool { return slices.Contains(blamed, m) })
			if c.verbose {
				fmt.Fprintln(c.stderr, err)
			}
			if err = b.write(); err == nil {
				s, err = c.newSuite(ctx, b, dir)
			}
		}
		if len(s.broken) > 0 && len(b.mutants) > 1 {
			fmt.Fprintf(c.stderr, "%s: without %s, which the switches break\n", dir, strings.Join(s.broken, ", "))
		}
		suites = append(suites, s)
	}
	return suites, nil
}

// newSuite compiles the tests of a package. A mutant that is alone in its build is always on:
// then all tests are for it.
func (c *campaign) newSuite(ctx context.Context, b *build, dir string) (*suite, error) {
	binary, err := b.binary(ctx, dir)
	if err != nil {
		return nil, err
	}
	s := &suite{dir: filepath.Join(b.root, dir), binary: binary, first: c.tests}
	if b.alone || c.tests != "" {
		return s, nil
	}
	return s, s.calibrate(ctx)
}

// withoutRefused returns the mutants that are in the build, and notes the others.
func (c *campaign) withoutRefused(t target, b *build, mutants []*mutant) (in []*mutant) {
	for _, m := range mutants {
		if slices.Contains(b.mutants, m) {
			in = append(in, m)
		} else {
			c.note(t, m, refusal)
		}
	}
	return in
}

// try runs the tests on each of the mutants, and returns those that survive.
func (c *campaign) try(ctx context.Context, t target, suites []*suite, mutants []*mutant) (survivors []*mutant, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan *mutant)
	for range c.jobs {
		wg.Go(func() {
			for m := range next {
				dead, failed := c.isKilled(ctx, suites, m)
				mu.Lock()
				switch {
				case failed != nil:
					err = errors.Join(err, failed)
				case dead:
					c.note(t, m, killed)
				default:
					survivors = append(survivors, m)
					if c.verbose && c.tests != "" {
						fmt.Fprintf(c.stderr, "passed: %s %s\n", t.dir, m.name())
					}
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
	slices.SortFunc(survivors, func(a, b *mutant) int { return a.id - b.id })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return survivors, err
}

// isKilled reports whether a test of the suites fails: the quick ones of all of them run first.
func (c *campaign) isKilled(ctx context.Context, suites []*suite, m *mutant) (bool, error) {
	for _, first := range []bool{true, false} {
		if !first && c.tests != "" {
			break
		}
		for _, s := range suites {
			if dead, err := s.kills(ctx, m, first); dead || err != nil {
				return dead, err
			}
		}
	}
	return false, nil
}

// note keeps a result. A survivor that nobody explains is told at once.
func (c *campaign) note(t target, m *mutant, v verdict) {
	c.results = append(c.results, result{t.dir, m, v})
	c.memory.add(t.dir, m, v)
	if v != killed {
		fmt.Fprintf(c.stderr, "%s: %s %s\n", v, t.dir, m.name())
	}
}

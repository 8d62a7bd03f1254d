package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// switches is the source that switches a mutant on.
//
//go:embed switches.go.txt
var switches string

// build is a build of test binaries from a package with mutants.
type build struct {
	root, dir string // of the module, and of the output
	p         *pkg
	mutants   []*mutant
}

// write writes the sources, and the overlay file for the go command.
func (b *build) write() error {
	replaced := map[string]string{}
	put := func(name string, text []byte) error {
		path := filepath.Join(b.dir, name)
		replaced[filepath.Join(b.p.dir, name)] = path
		return os.WriteFile(path, text, 0o600)
	}
	for _, f := range b.p.files {
		in := slices.DeleteFunc(slices.Clone(b.mutants), func(m *mutant) bool { return m.source() != f.name })
		if len(in) == 0 {
			continue
		}
		if err := put(f.name, rewrite(f.text, in)); err != nil {
			return err
		}
	}
	if err := put("mutants_switches.go", b.switches()); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "overlay.json"), overlay, 0o600)
}

// source returns the file that the mutant's edits change.
func (m *mutant) source() string {
	if m.edited != "" {
		return m.edited
	}
	return m.file
}

func (b *build) switches() []byte {
	var texts strings.Builder
	for _, m := range b.mutants {
		if m.from != "" {
			fmt.Fprintf(&texts, "\t%d: {%q, %q},\n", m.id, m.from, m.to)
		}
	}
	return []byte(strings.NewReplacer("package PACKAGE", "package "+b.p.types.Name(), "[2]string{\n", "[2]string{\n"+texts.String()).Replace(switches))
}

// binary compiles the tests of a package and returns the path of the binary.
func (b *build) binary(ctx context.Context, dir string) (string, error) {
	if err := b.write(); err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "_")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", filepath.Join(b.dir, "overlay.json"), "-o", path, "./"+dir)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("%s with mutants: %w", dir, err), &refused{string(bytes.TrimSpace(out))})
	}
	return path, nil
}

// refused is the output of the compiler.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// complaint matches a line of that output. Edits add no lines, so line numbers are those of the
// source.
var complaint = regexp.MustCompile(`([^/\s]+\.go):(\d+):\d+: `)

// blamed returns the mutants that may have broken the build: those that begin on lines in the
// compiler's output.
func (b *build) blamed(err error) (blamed []*mutant) {
	var r *refused
	if !errors.As(err, &r) {
		return nil
	}
	for _, found := range complaint.FindAllStringSubmatch(r.text, -1) {
		line, _ := strconv.Atoi(found[2])
		for _, f := range b.p.files {
			if f.name != found[1] {
				continue
			}
			for _, m := range b.mutants {
				if m.source() == f.name && !slices.Contains(blamed, m) && slices.ContainsFunc(m.edits, func(e edit) bool {
					return 1+bytes.Count(f.text[:e.offset], []byte("\n")) == line
				}) {
					blamed = append(blamed, m)
				}
			}
		}
	}
	return blamed
}

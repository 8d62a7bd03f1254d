package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// program is the source of this program.
//
//go:embed *.go switches.go.txt
var program embed.FS

// elsewhere are the files that the tests of suites read outside of their packages.
var elsewhere = []string{"testdata/captures", "testdata/dcgm-renames.tsv", "deploy/config.example.yml"}

// fingerprint returns a hash of what decides the verdicts on a target: its suites and all packages
// of the module that they import, with tests and test data, the versions of other modules and of
// Go, and this program. The explanations of survivors are not part of it.
func fingerprint(ctx context.Context, root string, t target) (string, error) {
	dirs, err := packages(ctx, root, t)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	if err := add(sum, program, ".", true); err != nil {
		return "", err
	}
	files := os.DirFS(root)
	for _, dir := range dirs {
		if err := add(sum, files, dir, false); err != nil {
			return "", err
		}
		if err := add(sum, files, path.Join(dir, "testdata"), true); err != nil {
			return "", err
		}
	}
	for _, name := range append([]string{"go.mod", "go.sum"}, elsewhere...) {
		if err := add(sum, files, name, true); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}

// packages returns the directories, relative to root, of the module's packages that make up the
// suites of a target.
func packages(ctx context.Context, root string, t target) (dirs []string, err error) {
	args := []string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}
	for _, dir := range t.suites {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for dir := range strings.Lines(string(out)) {
		relative, err := filepath.Rel(root, strings.TrimSuffix(dir, "\n"))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, filepath.ToSlash(relative))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// add hashes names and contents of a file, or of the files of a directory; deep, also of those below
// it. Tests of this program do not count, and neither does what does not exist.
func add(sum io.Writer, files fs.FS, dir string, deep bool) error {
	return fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case name == dir && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && name != dir && !deep:
			return fs.SkipDir
		case !d.Type().IsRegular() || files == program && strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(files, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return err
	})
}

// commit returns the commit of the tree at root in words, "" if it is not known.
func commit(ctx context.Context, root string) string {
	git := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	id := git("log", "-1", "--format=%h of %cs")
	if id != "" && git("status", "--porcelain") != "" {
		id += ", with changes that are not committed"
	}
	return id
}

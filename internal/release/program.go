package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// standardLibrary is the module name of Go's own packages here, and in Go's vulnerability database.
const standardLibrary = "stdlib"

// program is a built kpulse-proxy.
type program struct {
	file    string
	info    *debug.BuildInfo
	modules []module // linked into it, by path
}

// module is a module with packages linked into a program.
type module struct {
	path, version string
	licenses      []license
}

// license is a licence file of a module.
type license struct {
	name string // path below the root of the module
	text string
	id   string // SPDX id, "" if the file is no known licence, such as a NOTICE
}

// inspect reads a program, and finds the modules linked into it in Go's module cache.
func inspect(ctx context.Context, file string) (*program, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; name a program that go built", err)
	}
	modules, err := linked(ctx, info.Path, environment(info))
	if err != nil {
		return nil, err
	}
	return &program{file: file, info: info, modules: modules}, agree(info, modules)
}

// environment returns the variables with which go list selects the same files as the program's
// build.
func environment(info *debug.BuildInfo) (env []string) {
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			env = append(env, s.Key+"="+s.Value)
		}
	}
	return env
}

// agree returns an error unless the modules are those in the program's build information.
func agree(info *debug.BuildInfo, modules []module) error {
	if info.GoVersion != runtime.Version() {
		return fmt.Errorf("the program was built by %s, and this is %s; rebuild it", info.GoVersion, runtime.Version())
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		if !slices.ContainsFunc(modules, func(m module) bool { return m.path == dep.Path && m.version == dep.Version }) {
			return fmt.Errorf("the program contains %s %s, but the working tree does not; rebuild it", dep.Path, dep.Version)
		}
	}
	return nil
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// linked returns the modules, other than ours, that a build of a package in an environment links,
// by path, with their licences. The standard library comes first.
func linked(ctx context.Context, pkg string, env []string) ([]module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Dir,Standard,Module", pkg)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s: %w: %s", pkg, err, stderr.Bytes())
	}
	standard := module{path: standardLibrary, version: strings.TrimPrefix(runtime.Version(), "go")}
	if standard.licenses, err = licensesIn(runtime.GOROOT(), "."); err != nil { //nolint:staticcheck // the toolchain that runs this is available
		return nil, err
	}
	all := []module{standard}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list -deps %s: %w", pkg, err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		if all, err = add(all, &p); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all[1:], func(a, b module) int { return cmp.Compare(a.path, b.path) })
	for _, m := range all {
		if !slices.ContainsFunc(m.licenses, func(l license) bool { return l.id != "" }) {
			return nil, fmt.Errorf("%s %s has no licence that we know; read its files, and add a row to licenses.go", m.path, m.version)
		}
	}
	return all, nil
}

// add adds the module of a package, and the licences of the package: those in its directory and in
// all above it, up to the module's root.
func add(all []module, p *listed) ([]module, error) {
	path, version, root := p.Module.Path, p.Module.Version, p.Module.Dir
	if r := p.Module.Replace; r != nil {
		path, version = r.Path, r.Version
	}
	at := slices.IndexFunc(all, func(m module) bool { return m.path == path })
	if at < 0 {
		at = len(all)
		all = append(all, module{path: path, version: version})
	}
	below, err := filepath.Rel(root, p.Dir)
	if err != nil {
		return nil, err
	}
	for ; ; below = filepath.Dir(below) {
		found, err := licensesIn(root, below)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if !slices.ContainsFunc(all[at].licenses, func(have license) bool { return have.name == l.name }) {
				all[at].licenses = append(all[at].licenses, l)
			}
		}
		if below == "." {
			break
		}
	}
	slices.SortFunc(all[at].licenses, func(a, b license) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

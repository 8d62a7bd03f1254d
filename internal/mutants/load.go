package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a parsed and type-checked package.
type pkg struct {
	dir   string // absolute
	fset  *token.FileSet
	types *types.Package
	info  *types.Info
	files []*source
}

// source is a file of the package, except tests.
type source struct {
	name   string
	text   []byte
	syntax *ast.File
}

// listed is the output of `go list` for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
}

// load reads the package in a directory. The go command provides the types of its imports, which it
// compiles for that.
func load(ctx context.Context, dir string) (*pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,DepOnly", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	exports := map[string]string{}
	var own listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			own = l
		}
	}
	p := &pkg{dir: own.Dir, fset: token.NewFileSet()}
	if err := p.parse(append(own.GoFiles, own.CgoFiles...)); err != nil {
		return nil, err
	}
	return p, p.check(own.ImportPath, exports)
}

func (p *pkg) parse(names []string) error {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(p.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, &source{name, text, syntax})
	}
	return nil
}

func (p *pkg) check(path string, exports map[string]string) (err error) {
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open), FakeImportC: true}
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	var syntax []*ast.File
	for _, f := range p.files {
		syntax = append(syntax, f.syntax)
	}
	p.types, err = config.Check(path, p.fset, syntax, p.info)
	return err
}

// offset returns the offset of a position in its file.
func (p *pkg) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

// written returns the source of a node on one line.
func (p *pkg) written(f *source, n ast.Node) string {
	return strings.Join(strings.Fields(string(f.text[p.offset(n.Pos()):p.offset(n.End())])), " ")
}

// spelled returns a type as the file spells it, "" if it cannot, because it does not import the
// type's package.
func (p *pkg) spelled(f *source, t types.Type) string {
	spelled := true
	s := types.TypeString(t, func(other *types.Package) string {
		if other == p.types {
			return ""
		}
		for _, spec := range f.syntax.Imports {
			if strings.Trim(spec.Path.Value, `"`) != other.Path() {
				continue
			}
			if spec.Name != nil {
				return spec.Name.Name
			}
			return other.Name()
		}
		spelled = false
		return other.Name()
	})
	if !spelled {
		return ""
	}
	return s
}

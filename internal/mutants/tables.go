package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strconv"
)

// row leaves out rows of a table: elements of a slice or a map. Those of an array become zero.
func row(s *site) {
	lit, ok := s.node.(*ast.CompositeLit)
	if !ok {
		return
	}
	elided := ""
	if lit.Type == nil {
		if elided = s.spelled(s.file, s.info.TypeOf(lit)); elided == "" {
			return
		}
	}
	for i, e := range lit.Elts {
		change := "without " + s.brief(e)
		pair, keyed := e.(*ast.KeyValueExpr)
		switch s.info.TypeOf(lit).Underlying().(type) {
		case *types.Slice:
			if keyed {
				continue // its index is not i
			}
			explicit := ""
			if i == len(lit.Elts)-1 { // the innermost call has the literal
				explicit = elided
			}
			s.add(change, s.wrap(lit, fmt.Sprintf("mutantDrop(%s, %d, %s", idMark, i, explicit), ")")...)
		case *types.Map:
			if elided == "" {
				s.add(change, s.call(lit, "mutantWithout", ", "+s.written(s.file, pair.Key))...)
			}
		case *types.Array:
			if keyed {
				e = pair.Value
			}
			s.zero(change, e)
		}
	}
}

// zero makes an element of an array zero.
func (s *site) zero(change string, e ast.Expr) {
	t := s.spelled(s.file, s.info.TypeOf(e))
	if t == "" || isZero(s.info.Types[e].Value) {
		return
	}
	before := "mutantZero[" + t + "](" + idMark + ", "
	if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
		if _, ok := s.info.TypeOf(inner).Underlying().(*types.Slice); ok || isPointer(s.info.TypeOf(e)) {
			return // row does these
		}
		before += t
	}
	s.add(change, s.wrap(e, before, ")")...)
}

// isZero reports whether a constant is 0, "" or false.
func isZero(v constant.Value) bool {
	if v == nil {
		return false
	}
	switch v.Kind() {
	case constant.Bool:
		return !constant.BoolVal(v)
	case constant.String:
		return constant.StringVal(v) == ""
	}
	return constant.Sign(v) == 0
}

func isPointer(t types.Type) bool { _, ok := t.Underlying().(*types.Pointer); return ok }

// cell replaces each cell of a table with the next one in its column that differs. The first column
// is the name of the row.
func cell(s *site) {
	lit, ok := s.node.(*ast.CompositeLit)
	if !ok || len(lit.Elts) < 2 {
		return
	}
	if _, ok := s.info.TypeOf(lit).Underlying().(*types.Struct); ok {
		return
	}
	var rows [][]ast.Expr // by the index of the field
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		rows = append(rows, s.cells(e, lit))
	}
	for i, cells := range rows {
		for column, c := range cells {
			if c == nil || !s.isPlain(c) {
				continue
			}
			if other := s.next(rows, i, column); other != nil {
				s.swap(c, other, lit.Elts[i])
			}
		}
	}
}

// cells returns the cells of a row: the fields of a struct, nil for missing ones, or the plain
// value in an array or map.
func (s *site) cells(e ast.Expr, table *ast.CompositeLit) []ast.Expr {
	inner, ok := e.(*ast.CompositeLit)
	if !ok {
		if _, ok := s.info.TypeOf(table).Underlying().(*types.Slice); ok {
			return nil // row does these
		}
		return []ast.Expr{e}
	}
	st, ok := s.info.TypeOf(inner).Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	cells := make([]ast.Expr, st.NumFields())
	for i, e := range inner.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			for i = 0; st.Field(i).Name() != pair.Key.(*ast.Ident).Name; i++ {
			}
			e = pair.Value
		}
		cells[i] = e
	}
	return cells
}

// isPlain reports whether a cell is data, not text for people.
func (s *site) isPlain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && (err != nil || prose.MatchString(text) && text != "") {
			return false
		}
		return true
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.CompositeLit:
		return e.Type != nil
	case *ast.BinaryExpr:
		return s.isPlain(e.X) && s.isPlain(e.Y)
	}
	return false
}

// next returns the next cell of a column after row i that differs from that of row i.
func (s *site) next(rows [][]ast.Expr, i, column int) ast.Expr {
	this := s.written(s.file, rows[i][column])
	for k := 1; k < len(rows); k++ {
		row := rows[(i+k)%len(rows)]
		if column < len(row) && row[column] != nil && s.isPlain(row[column]) && s.written(s.file, row[column]) != this {
			return row[column]
		}
	}
	return nil
}

func (s *site) swap(c, other ast.Expr, row ast.Node) {
	t := s.info.TypeOf(c)
	if b, ok := t.(*types.Basic); ok && b.Kind() == types.UntypedNil {
		t = s.info.TypeOf(other)
	}
	if spelled := s.spelled(s.file, types.Default(t)); spelled != "" && !types.IsInterface(t) {
		s.add(s.brief(c)+" → "+s.brief(other)+" in "+s.brief(row), s.call(c, "mutantPick["+spelled+"]", ", "+s.written(s.file, other))...)
	}
}

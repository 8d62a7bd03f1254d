package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
)

// numeral returns a node that is a literal number, or a shift of such; nil for others.
func numeral(n ast.Node) (e ast.Expr, kind token.Token) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.STRING && n.Kind != token.IMAG {
			return n, n.Kind
		}
	case *ast.BinaryExpr:
		if n.Op == token.SHL {
			return n, token.INT
		}
	}
	return nil, 0
}

// altered returns a number other than value, "" if there is none.
func altered(value constant.Value, kind token.Token) string {
	if value == nil {
		return ""
	}
	if f, _ := constant.Float64Val(value); kind == token.FLOAT && f != 0 {
		return strconv.FormatFloat(f*1.1, 'g', 6, 64)
	}
	n, exact := constant.Int64Val(constant.ToInt(value))
	switch {
	case !exact || n == 1<<63-1:
		return ""
	case n == 1000:
		return "1024"
	case n >= 1024 && n%1024 == 0:
		return fmt.Sprint(n / 1024 * 1000)
	case kind == token.CHAR:
		return strconv.QuoteRune(rune(n + 1))
	}
	return fmt.Sprint(n + 1)
}

func numbers(s *site) {
	e, kind := numeral(s.node)
	if e == nil || s.isFixed() || s.isIgnored() {
		return
	}
	other, t := altered(s.info.Types[e].Value, kind), s.typeOf(s.whole(e))
	if other != "" && t != "" {
		s.add(s.brief(e)+" → "+other+" in "+s.around(), s.call(e, "mutantPick["+t+"]", ", "+other)...)
	}
}

// whole returns the largest constant expression that contains e: the checker keeps no types of its
// parts.
func (s *site) whole(e ast.Expr) ast.Expr {
	if b, ok := s.info.TypeOf(e).(*types.Basic); !ok || b.Info()&types.IsUntyped == 0 {
		return e
	}
	for _, n := range slices.Backward(s.path) {
		switch n := n.(type) {
		case *ast.ParenExpr, *ast.UnaryExpr, *ast.BinaryExpr:
			if !s.isConstant(n.(ast.Expr)) {
				return e
			}
			e = n.(ast.Expr)
		default:
			return e
		}
	}
	return e
}

// isIgnored reports whether the node is returned beside false or an error, so that no caller uses it.
func (s *site) isIgnored() bool {
	ret, is := s.path[len(s.path)-1].(*ast.ReturnStmt)
	if !is || len(ret.Results) < 2 {
		return false
	}
	switch last := ret.Results[len(ret.Results)-1].(type) {
	case *ast.Ident:
		return last.Name == "false" || last.Name == "err"
	case *ast.CallExpr:
		call := types.ExprString(last.Fun)
		return call == "fmt.Errorf" || call == "errors.New"
	}
	return false
}

// isFixed reports whether the node must be constant: a key of an array, or a part of a shift.
func (s *site) isFixed() bool {
	for i, n := range s.path {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.SHL || n.Op == token.SHR {
				return true
			}
		case *ast.CompositeLit:
			if i+1 < len(s.path) && isIndexed(s.info.TypeOf(n)) {
				if pair, ok := s.path[i+1].(*ast.KeyValueExpr); ok && pair.Key.Pos() <= s.node.Pos() && s.node.End() <= pair.Key.End() {
					return true
				}
			}
		}
	}
	return false
}

// isIndexed reports whether a type is an array or a slice.
func isIndexed(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Array, *types.Slice:
		return true
	}
	return false
}

// constants derives mutants of declared constants. Expressions with them may have to be constant
// too, so each has a build of its own.
func (s *site) constants(d *ast.GenDecl) {
	s.operator = "constant"
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		s.function = spec.Names[0].Name
		for _, value := range spec.Values {
			if counted.MatchString(s.written(s.file, value)) {
				continue
			}
			ast.Inspect(value, func(n ast.Node) bool {
				e, kind := numeral(n)
				if e == nil {
					return true
				}
				if other := altered(s.info.Types[e].Value, kind); other != "" {
					s.add(s.brief(e)+" → "+other+" in "+s.brief(spec), s.replace(e.Pos(), int(e.End()-e.Pos()), other)).alone = true
				}
				return false
			})
		}
	}
}

// counted matches lists of constants that name things.
var counted = regexp.MustCompile(`\biota\b`)

// prose matches strings that only people read.
var prose = regexp.MustCompile(`[ %\n]|^$`)

func word(s *site) {
	lit, ok := s.node.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING || s.isFixed() || s.inRow() {
		return
	}
	if text, err := strconv.Unquote(lit.Value); err != nil || prose.MatchString(text) {
		return
	}
	if t := s.typeOf(lit); t != "" {
		s.add(lit.Value+" → another word in "+s.around(), s.call(lit, "mutantPick["+t+"]", `, "~"+`+lit.Value)...)
	}
}

// inRow reports whether the node is in a table.
func (s *site) inRow() bool {
	return slices.ContainsFunc(s.path, func(n ast.Node) bool { _, ok := n.(*ast.CompositeLit); return ok })
}

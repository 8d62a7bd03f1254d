package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"unicode/utf8"
)

// operator mutates one kind of code.
type operator struct {
	name, about string
	derive      func(*site)
}

// operators are all mutations.
var operators = []operator{
	{"boundary", "`<` and `<=`, `>` and `>=` are swapped", boundary},
	{"equality", "`==` and `!=` are swapped", equality},
	{"logic", "`&&` and `||` are swapped", logic},
	{"clause", "an operand of `&&` or `||` is left out", clause},
	{"condition", "a condition, or a returned truth value, is negated", condition},
	{"boolean", "`true` and `false` are swapped", boolean},
	{"arithmetic", "`+` and `-`, `*` and `/` are swapped", arithmetic},
	{"extreme", "`min` and `max` are swapped", extreme},
	{"constant", "a number is 1 more, or a float a tenth more; 1000 and 1024 are swapped", numbers},
	{"word", "a string of one word becomes another", word},
	{"row", "a row of a table is left out", row},
	{"cell", "a cell of a table becomes that of the next row that differs", cell},
	{"statement", "an assignment or a call is left out", statement},
	{"jump", "a `continue` or `break`, or a `return` before the last statement, is left out", jump},
	{"line", "a line of an embedded table is left out, or a cell becomes that of the next line that differs", nil},
}

// site is a node that an operator visits.
type site struct {
	*pkg
	file     *source
	function string
	path     []ast.Node // from the file to the node's parent
	node     ast.Node
	operator string
	found    *[]*mutant
}

// errNotBuilt means that the build leaves out a file of a target, for example because it needs cgo.
var errNotBuilt = errors.New("has nothing to mutate in this build")

// derive returns all mutants of a target's package, numbered.
func derive(p *pkg, t target) ([]*mutant, error) {
	var found []*mutant
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			s := &site{pkg: p, file: f, function: declared(d), found: &found}
			ast.PreorderStack(d, nil, s.visit)
		}
	}
	lines, err := p.lines()
	if err != nil {
		return nil, err
	}
	found = append(found, lines...)
	for _, name := range t.files {
		if !slices.ContainsFunc(found, func(m *mutant) bool { return m.file == name }) {
			return nil, fmt.Errorf("%s %w", name, errNotBuilt)
		}
	}
	if t.files != nil {
		found = slices.DeleteFunc(found, func(m *mutant) bool { return !slices.Contains(t.files, m.file) })
	}
	number(found)
	return found, nil
}

// visit derives the mutants of a node, and reports whether its children may have some.
func (s *site) visit(n ast.Node, path []ast.Node) bool {
	s.node, s.path = n, path
	if s.isHint() {
		return false
	}
	switch n := n.(type) {
	case *ast.TypeSpec, *ast.ImportSpec, *ast.FuncType, *ast.ArrayType:
		return false
	case *ast.GenDecl:
		if n.Tok == token.VAR {
			break
		}
		if n.Tok == token.CONST {
			s.constants(n)
		}
		return false
	case *ast.ValueSpec:
		if len(path) == 1 { // not in a function
			s.function = n.Names[0].Name
		}
	}
	for _, o := range operators {
		if o.derive != nil {
			s.operator = o.name
			o.derive(s)
		}
	}
	return true
}

// hints are arguments that change no result, by function: a capacity, and the size of a float64.
var hints = map[string]int{"make": 2, "strconv.ParseFloat": 1}

// isHint reports whether the node is a hint.
func (s *site) isHint() bool {
	call, ok := s.parent().(*ast.CallExpr)
	if !ok {
		return false
	}
	i, ok := hints[s.written(s.file, call.Fun)]
	return ok && i < len(call.Args) && call.Args[i] == s.node
}

// declared returns the name of a declaration.
func declared(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "" // each variable has its own name
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return t.(*ast.Ident).Name + "." + f.Name.Name
}

// add adds a mutant.
func (s *site) add(change string, edits ...edit) *mutant {
	m := &mutant{file: s.file.name, function: s.function, operator: s.operator, change: change, edits: edits}
	*s.found = append(*s.found, m)
	return m
}

// wrap puts text before and after a node.
func (s *site) wrap(n ast.Node, before, after string) []edit {
	from, to := s.offset(n.Pos()), s.offset(n.End())
	return []edit{{offset: from, text: before, partner: to}, {offset: to, text: after, closing: true, partner: from}}
}

// replace replaces a token with text.
func (s *site) replace(pos token.Pos, length int, text string) edit {
	at := s.offset(pos)
	return edit{offset: at, length: length, text: text, partner: at + length}
}

// call makes a node the argument of a switch, followed by others.
func (s *site) call(n ast.Node, function, others string) []edit {
	return s.wrap(n, function+"("+idMark+", ", others+")")
}

// brief returns the source of a node on one line, truncated.
func (s *site) brief(n ast.Node) string { return short(s.written(s.file, n)) }

func short(text string) string {
	const most = 72
	if len(text) <= most {
		return text
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// parent returns the parent of the node.
func (s *site) parent() ast.Node {
	if len(s.path) == 0 {
		return nil
	}
	return s.path[len(s.path)-1]
}

// isConstant reports whether the compiler knows the value of an expression.
func (s *site) isConstant(e ast.Expr) bool { return s.info.Types[e].Value != nil }

// typeOf returns the type of an expression as the file spells it, "" if it cannot.
func (s *site) typeOf(e ast.Expr) string {
	t := s.info.TypeOf(e)
	if t == nil || types.IsInterface(t) {
		return ""
	}
	return s.spelled(s.file, types.Default(t))
}

// isNumber reports whether an expression is a number.
func (s *site) isNumber(e ast.Expr) bool { return s.is(e, types.IsNumeric) }

func (s *site) is(e ast.Expr, info types.BasicInfo) bool {
	t := s.info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// compared are the operators of boundary, and their switches.
var compared = map[token.Token]struct{ function, other string }{
	token.LSS: {"mutantLess", "<="},
	token.LEQ: {"mutantAtMost", "<"},
	token.GTR: {"mutantGreater", ">="},
	token.GEQ: {"mutantAtLeast", ">"},
}

// calculated are those of arithmetic.
var calculated = map[token.Token]struct{ function, other string }{
	token.ADD: {"mutantPlus", "-"},
	token.SUB: {"mutantMinus", "+"},
	token.MUL: {"mutantTimes", "/"},
	token.QUO: {"mutantOver", "*"},
}

// binary makes a binary expression a call with both operands.
func (s *site) binary(b *ast.BinaryExpr, function, other string) {
	edits := s.wrap(b, function+"("+idMark+", ", ")")
	edits = append(edits, s.replace(b.OpPos, len(b.Op.String()), ","))
	s.add(s.brief(b)+" → "+other, edits...)
}

func boundary(s *site) {
	b, ok := s.node.(*ast.BinaryExpr)
	if !ok || s.isConstant(b) {
		return
	}
	if c, ok := compared[b.Op]; ok {
		s.binary(b, c.function, c.other)
	}
}

func equality(s *site) {
	if b, ok := s.node.(*ast.BinaryExpr); ok && isEquality(b) && !s.isConstant(b) {
		other := token.EQL
		if b.Op == token.EQL {
			other = token.NEQ
		}
		s.add(s.brief(b)+" → "+other.String(), s.call(b, "mutantFlip", "")...)
	}
}

func isEquality(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (b.Op == token.EQL || b.Op == token.NEQ)
}

// logic turns one operator into the other by De Morgan's law, which keeps the order of evaluation
// and short circuits.
func logic(s *site) {
	b, ok := s.node.(*ast.BinaryExpr)
	if !ok || !isLogic(b) {
		return
	}
	other := token.LAND
	if b.Op == token.LAND {
		other = token.LOR
	}
	s.add(s.brief(b)+" → "+other.String(), slices.Concat(s.call(b, "mutantFlip", ""), s.call(b.X, "mutantFlip", ""), s.call(b.Y, "mutantFlip", ""))...)
}

func isLogic(b *ast.BinaryExpr) bool { return b.Op == token.LAND || b.Op == token.LOR }

func clause(s *site) {
	b, ok := s.node.(*ast.BinaryExpr)
	if !ok || !isLogic(b) {
		return
	}
	for _, operand := range []ast.Expr{b.X, b.Y} {
		if x, ok := operand.(*ast.BinaryExpr); ok && x.Op == b.Op {
			continue // its operands belong to b
		}
		function := "mutantFalse"
		if b.Op == token.LAND {
			function = "mutantTrue"
		}
		s.add("without "+s.brief(operand)+" in "+s.brief(b), s.call(operand, function, "")...)
	}
}

func condition(s *site) {
	var tested []ast.Expr
	switch n := s.node.(type) {
	case *ast.IfStmt:
		tested = []ast.Expr{n.Cond}
	case *ast.ReturnStmt:
		tested = n.Results
	case *ast.CaseClause:
		if sw, ok := s.path[len(s.path)-2].(*ast.SwitchStmt); ok && sw.Tag == nil {
			tested = n.List
		}
	}
	for _, e := range tested {
		if s.isConstant(e) || isEquality(e) || !s.is(e, types.IsBoolean) {
			continue
		}
		s.add(s.brief(e)+" → !", s.call(e, "mutantFlip", "")...)
	}
}

func boolean(s *site) {
	if id, ok := s.node.(*ast.Ident); ok && (s.info.Uses[id] == types.Universe.Lookup("true") || s.info.Uses[id] == types.Universe.Lookup("false")) {
		s.add(s.around()+": !"+id.Name, s.call(id, "mutantFlip", "")...)
	}
}

// around returns the source of the statement or row that contains the node.
func (s *site) around() string {
	for _, n := range slices.Backward(s.path) {
		switch n.(type) {
		case *ast.ReturnStmt, *ast.AssignStmt, *ast.ExprStmt, *ast.CallExpr, *ast.CompositeLit, *ast.ValueSpec:
			return s.brief(n)
		}
	}
	return s.brief(s.node)
}

func arithmetic(s *site) {
	switch n := s.node.(type) {
	case *ast.BinaryExpr:
		if c, ok := calculated[n.Op]; ok && !s.isConstant(n) && s.isNumber(n) {
			s.binary(n, c.function, c.other)
		}
	case *ast.AssignStmt:
		s.assigned(n)
	case *ast.IncDecStmt:
		t, op, other := s.typeOf(n.X), "+= ", "--"
		if n.Tok == token.DEC {
			op, other = "-= ", "++"
		}
		if t != "" {
			s.add(s.brief(n)+" → "+other, s.replace(n.TokPos, 2, op+"mutantNegate["+t+"]("+idMark+", 1)"))
		}
	}
}

// assigned does so for += and the like.
func (s *site) assigned(n *ast.AssignStmt) {
	t := s.typeOf(n.Lhs[0])
	if !s.isNumber(n.Lhs[0]) || t == "" {
		return
	}
	value := n.Rhs[0]
	switch n.Tok {
	case token.ADD_ASSIGN, token.SUB_ASSIGN:
		s.add(s.brief(n)+" → the other sign", s.call(value, "mutantNegate["+t+"]", "")...)
	case token.MUL_ASSIGN, token.QUO_ASSIGN:
		s.add(s.brief(n)+" → the other factor", s.call(value, "mutantPick["+t+"]", ", 1/("+s.written(s.file, value)+")")...)
	}
}

func extreme(s *site) {
	call, ok := s.node.(*ast.CallExpr)
	if !ok || s.isConstant(call) || len(call.Args) < 2 {
		return
	}
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return
	}
	for _, f := range []struct{ name, other, function string }{{"min", "max", "mutantMin"}, {"max", "min", "mutantMax"}} {
		if s.info.Uses[id] == types.Universe.Lookup(f.name) {
			s.add(s.brief(call)+" → "+f.other, s.replace(id.Pos(), len(f.name), f.function),
				edit{offset: s.offset(call.Lparen + 1), text: idMark + ", ", partner: s.offset(call.End())})
		}
	}
}

// kept are functions whose calls are not left out, because the code after them relies on them.
var kept = []string{"panic"}

func statement(s *site) {
	if !isIn(s.parent()) {
		return
	}
	switch n := s.node.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE || !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" }) {
			return
		}
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		if !ok || slices.Contains(kept, s.written(s.file, call.Fun)) {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt:
	default:
		return
	}
	s.leaveOut()
}

func jump(s *site) {
	if !isIn(s.parent()) {
		return
	}
	switch n := s.node.(type) {
	case *ast.BranchStmt:
		if n.Tok != token.CONTINUE && n.Tok != token.BREAK {
			return
		}
	case *ast.ReturnStmt:
		if !s.isEarly() {
			return
		}
	default:
		return
	}
	s.leaveOut()
}

// leaveOut makes the mutant without the statement.
func (s *site) leaveOut() {
	s.add("without "+s.brief(s.node), s.wrap(s.node, "if mutantDo("+idMark+") { ", " }")...)
}

// isIn reports whether a node is a list of statements.
func isIn(n ast.Node) bool {
	switch n.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// isEarly reports whether the function can continue without the statement.
func (s *site) isEarly() bool {
	for i, n := range slices.Backward(s.path) {
		var results *ast.FieldList
		switch f := n.(type) {
		case *ast.FuncDecl:
			results = f.Type.Results
		case *ast.FuncLit:
			results = f.Type.Results
		default:
			continue
		}
		body := s.path[i+1].(*ast.BlockStmt)
		last := body.List[len(body.List)-1]
		if _, loops := last.(*ast.ForStmt); loops {
			return true
		}
		if results == nil {
			return last != s.node
		}
		return s.node.Pos() < last.Pos()
	}
	return false
}

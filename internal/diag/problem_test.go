package diag

import "testing"

func TestProblem(t *testing.T) {
	for _, test := range []struct {
		problem Problem
		want    string
	}{
		{Problem{File: "f", Text: "is empty; fill it"}, "f: is empty; fill it"},
		{Problem{File: "f", Line: 3, Text: "t"}, "f:3: t"},
		{Problem{File: "f", Line: 3, Column: 14, Place: "a.b", Text: "t"}, "f:3:14: a.b: t"},
		{Problem{File: "f", Column: 14, Text: "t"}, "f: t"},
		{Problem{File: "f", Place: "a.b", Warning: true, Text: "t", Below: "one\n  two"}, "f: warning: a.b: t\n    one\n      two"},
	} {
		if got := test.problem.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestProblems(t *testing.T) {
	warning, mistake := Problem{File: "f", Text: "w", Warning: true}, Problem{File: "f", Text: "m"}
	for _, test := range []struct {
		problems Problems
		refuse   bool
		text     string
	}{
		{nil, false, ""},
		{Problems{warning}, false, "f: warning: w"},
		{Problems{warning, mistake, warning}, true, "f: warning: w\nf: m\nf: warning: w"},
	} {
		if got := test.problems.Error(); got != test.text || test.problems.Refuse() != test.refuse {
			t.Errorf("%v: refuse %v, %q, want %q", test.problems, test.problems.Refuse(), got, test.text)
		}
	}
}

package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// TestLocate looks for a word of a value where the file has it.
func TestLocate(t *testing.T) {
	for _, test := range []struct {
		name, file string
		astray     bool // it is the place of the value
	}{
		{"plain", "expr: sum(BAD)\n", false},
		{"plain at once", "expr: BAD\n", false},
		{"plain over lines", "a: 1\nexpr: sum(\n  x)   +\n\n  BAD\n", false},
		{"quoted", "expr: 'sum(BAD)'\n", false},
		{"a quoted quote", "expr: 'sum(x{a=''b''}) + BAD'\n", false},
		{"doubly quoted", `expr: "sum(x{a=\"b\\d\"}) + BAD"` + "\n", false},
		{"doubly quoted over lines", "expr: \"x +\n     BAD\"\n", false},
		{"literal", "a: 1\nexpr: |\n    sum(\n      BAD)\n", false},
		{"literal with an empty line", "expr: |-\n\n  x +\n\n  BAD\n", false},
		{"literal with an indentation", "expr: |2\n    x +\n  BAD\n", false},
		{"literal with windows line ends", "expr: |\r\n  x +\r\n  BAD\r\n", false},
		{"folded", "expr: >-\n  x +\n  y +\n  BAD\n", false},
		{"flow", "{a: 1, expr: x + BAD}\n", false},
		{"JSON", `{"a": 1, "expr": "x + BAD"}`, false},
		{"wide characters", "expr: x{a=\"日本\"} + BAD\n", false},
		{"wide characters before", "日本: 1\n\"é\": {expr: BAD}\n", false},
		{"an alias", "a: &e\n  x + BAD\nexpr: *e\n", false},
		{"an escaped line end", `expr: "x +\n\tBAD"`, false},
		{"an anchored quote", "a: &e 'x + BAD'\nexpr: *e\n", false},
		{"an anchored block", "a: &e |\n  BAD\nexpr: *e\n", false},
		{"an escaped letter", `expr: "\x78 + BAD"`, true},
	} {
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(test.file), &root); err != nil {
			t.Fatal(err)
		}
		value := find(&root, "expr")
		line, column := value.Line, value.Column
		text := value.Value
		if value.Kind == yaml.AliasNode {
			text = value.Alias.Value
		}
		if !test.astray {
			before, _, _ := strings.Cut(test.file, "BAD")
			line = strings.Count(before, "\n") + 1
			column = utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1
		}
		s := source{body: test.file}
		if gotLine, gotColumn := s.locate(value, text, strings.Index(text, "BAD")); gotLine != line || gotColumn != column {
			t.Errorf("%s: found at %d:%d, want %d:%d", test.name, gotLine, gotColumn, line, column)
		}
	}
}

// find returns the value of a key somewhere below n.
func find(n *yaml.Node, key string) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == key {
			return n.Content[i+1]
		}
		if found := find(child, key); found != nil {
			return found
		}
	}
	return nil
}

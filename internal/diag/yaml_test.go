package diag

import (
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestParseYAML(t *testing.T) {
	for _, test := range []struct {
		name, text string
		line       int    // of the root, or of the problem
		kind       string // of the root
		problem    string
	}{
		{"nothing", "", 0, "nothing", ""},
		{"a comment", "# a\n", 0, "nothing", ""},
		{"keys", "\n\na: 1\n", 3, "keys", ""},
		{"a list", "- 1", 1, "a list", ""},
		{"a word", "off", 1, `"off"`, ""},
		{"a tab", "a:\n\tb: 1\n", 2, "", "not YAML: found character that cannot start any token; check"},
		{"an open bracket", "a: [1\n", 1, "", "not YAML: did not find expected ',' or ']'; check"},
		{"two documents", "a: 1\n---\nb: 2\n", 2, "", "a second document begins here; keep one"},
		{"a second document that is none", "a: 1\n---\n[\n", 3, "", "not YAML: did not find expected node content"},
		{"no UTF-8", "a: 1\nb: \xff\n", 1, "", "not YAML: invalid leading UTF-8 octet"},
		{"a control character", "a: 1\n\nb: \"\x01\"\n", 1, "", "not YAML: control characters are not allowed"},
		{"no anchor of that name", "a: b\nc: *b\n", 1, "", "not YAML: unknown anchor 'b' referenced"},
	} {
		root, problem := ParseYAML([]byte(test.text))
		switch {
		case test.problem == "" && (problem != nil || root.Line != test.line || kindOf(root) != test.kind):
			t.Errorf("%s: got %+v, %v", test.name, root, problem)
		case test.problem != "" && (problem == nil || problem.Line != test.line || !strings.HasPrefix(problem.Text, test.problem)):
			t.Errorf("%s: got %+v, want line %d, %s", test.name, problem, test.line, test.problem)
		}
	}
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == NullTag:
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

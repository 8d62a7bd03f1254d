package exposition_test

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

func TestReadUnescaped(t *testing.T) {
	for _, test := range []struct{ name, line, block string }{
		{"a quote", `a{gpu="0",hpc_job="a"b",UUID="A"} 1`, `{gpu="0",hpc_job="",UUID="A",}`},
		{"a quote at the end", `a{gpu="0",hpc_job="a""} 1`, `{gpu="0",hpc_job="",}`},
		{"quotes all around", `a{hpc_job=""a"",gpu="0"} 1`, `{hpc_job="",gpu="0",}`},
		{"a backslash at the end", `a{hpc_job="a\",gpu="0"} 1`, `{hpc_job="",gpu="0",}`},
		{"the last label's", `a{gpu="0",hpc_job="a\"} 1`, `{gpu="0",hpc_job="",}`},
		{"two of them", `a{x="\",gpu="0",y="""} 1`, `{x="",gpu="0",y="",}`},
		{"a comma behind the quote", `a{gpu="0",hpc_job="a", b"} 1`, `{gpu="0",hpc_job="",}`},
		{"blanks and a last comma", `a {gpu="0" , x="a"b", } 1 17`, `{gpu="0",x="",}`},
		{"escapes beside it", `a{x="\"y\\",z="a"b"} 1`, `{x="\"y\\",z="",}`},
		{"no UTF-8", "a{gpu=\"0\",x=\"\xff\"} 1", `{gpu="0",x="",}`},

		{"nothing wrong with it", `a{gpu="0"} 1`, ""},
		{"no value", `a{gpu="0",x="a"b"}`, ""},
		{"a word for a value", `a{gpu="0",x="a"b"} Tesla T4`, ""},
		{"no name", `{gpu="0",x="a"b"} 1`, ""},
		{"no block", `a 1 x`, ""},
		{"no closing quote", `a{gpu="0",x="a} 1`, ""},
		{"two lines in one", `a{gpu="0",UUID="A"} 4b{gpu="1",UUID="B"} 1`, ""},
		{"a line within a line", `a{gpu="0",UUID="Ab{gpu="1",UUID="B"} 1`, ""},
		{"a label twice", `a{gpu="0",UUID="A"x",UUID="B"} 1`, ""},
		{"a label without quotes", `a{gpu=0,x="a"b"} 1`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			name, block, value, _, ok := exposition.ReadUnescaped(nil, test.line)
			if ok != (test.block != "") || ok && (name != "a" || string(block) != test.block || value != 1) {
				t.Errorf("%s is %q %s %v, %v; want %s", test.line, name, block, value, ok, test.block)
			}
			if ok && exposition.Next(name+string(block)+" 1", 0).Kind != exposition.Series {
				t.Errorf("%s is not a block", block)
			}
		})
	}
}

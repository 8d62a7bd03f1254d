package host

import (
	"regexp"
	"strings"
)

// assignment matches the name of a value and what is between them: in shells,
// queries, JSON, YAML, HTTP headers and Python, there also os.environ["NAME"] = and
// setdefault("NAME", "value").
var assignment = regexp.MustCompile(`([\w.+-]+)(?:\\*["']?\]?(?: ?(?:=>|:=|=|%3[Dd]) ?| ?:[ \x00]?)|\\*["'] ?, ?)`)

// maskAssignments masks the values of names that say that they are secret.
func maskAssignments(text string) string {
	var out strings.Builder
	done := 0
	for {
		m := assignment.FindStringSubmatchIndex(text[done:])
		if m == nil {
			out.WriteString(text[done:])
			return out.String()
		}
		begin, end := done+m[2], done+m[1]
		out.WriteString(text[done:end])
		name, value := text[begin:done+m[3]], text[end:endOf(text, end, endOfWord)]
		if done = end; isSecret(name, value) {
			stop := endOfWord
			if begin == 0 || text[begin-1:begin] == gap {
				stop = endOfArgument // the argument is the assignment
			}
			done = maskValue(&out, text, end, stop)
		}
	}
}

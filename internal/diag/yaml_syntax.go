package diag

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// origin is how yaml.v3 says where a file is no YAML.
var origin = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// yaml.v3 counts lines in two ways and names none where its count is 0. Its parser
// counts those before the bracket or block that went wrong, its scanner counts from
// 1; the rest, such as wrong encodings, come without a line.
var (
	ofParser  = regexp.MustCompile(`^did not find expected (key|node|','|'-'|<)|^found (undefined tag handle|duplicate %|incompatible)`)
	ofScanner = regexp.MustCompile(`^(did not find|found|mapping|could not find|block) `)
)

// explain turns what yaml.v3 says of body, which is no YAML, into what its author
// can follow.
func explain(err error, body []byte) *Problem {
	text := err.Error()
	line := 0
	if m := origin.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // "" is 0
		text = strings.TrimPrefix(text, m[0])
	}
	switch {
	case ofParser.MatchString(text):
		line++
	case ofScanner.MatchString(text):
		line = max(line, 1)
	}
	line = min(line, lines(body)) // the end of the file counts as a line to yaml.v3
	return &Problem{Line: line, Text: "no YAML: " + text + "; check quotes, and the indentation, which must be spaces"}
}

// lines counts the lines of body, at least 1, the last also where nothing ends it.
func lines(body []byte) int {
	body = bytes.TrimSuffix(body, []byte("\n"))
	return bytes.Count(body, []byte("\n")) + 1
}

package diag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// maxFile is the size in bytes of the largest file that Read reads: some twenty thousand rules.
const maxFile = 4 << 20

// Read returns the content of a file of people. what names the kind of file it should be, such as
// "config file". The error begins with the path.
func Read(path, what string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, what, err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, unreadable(path, what, err)
	case len(body) > maxFile:
		return nil, fmt.Errorf("%s: larger than %d bytes, too large for a %s; name the right one", path, maxFile, what)
	}
	return body, nil
}

// unreadable returns the file system's error with a remedy.
func unreadable(path, what string, err error) error {
	remedy := "check that it can be read: cat " + path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy = "check the name of the " + what
	case errors.Is(err, syscall.EISDIR):
		remedy = "name a file in it"
	}
	return fmt.Errorf("%s: %w; %s", path, reason(err), remedy) // the path is there already
}

// NullTag is the tag of an empty value.
const NullTag = "!!null"

// ParseYAML returns the root of the one document in body; if there is none, an empty
// value whose line is 0. Aliases are not followed. The problem, which names no file, says
// why body is not one document.
func ParseYAML(body []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: NullTag}, nil
	}
	if err == nil {
		if err = decoder.Decode(&second); errors.Is(err, io.EOF) {
			return first.Content[0], nil
		}
	}
	if err == nil {
		return nil, &Problem{Line: second.Line, Text: "a second document begins here; keep one and remove the ---"}
	}
	line, text := 0, err.Error()
	if m := syntaxError().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // "" is 0
		text = strings.TrimPrefix(text, m[0])
	}
	// An error without a line, such as a wrong encoding, is about the file. yaml.v3 counts the end of the
	// file as a line.
	line = max(1, min(line, bytes.Count(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))+1))
	return nil, &Problem{Line: line, Text: "not YAML: " + text + "; check quotes, and the indentation, which must be spaces"}
}

// Pattern returns a regular expression that is compiled when it is first used.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	// syntaxError matches the prefix of yaml.v3's syntax errors.
	syntaxError = Pattern(`^yaml: (?:line ([0-9]+): )?`)
	// decodingError matches the errors of yaml.v3's decoder, one per line.
	decodingError = Pattern(`(?m)^  line ([0-9]+): (.*)$`)
	unknownField  = Pattern(`^field (.*) not found in type `)
)

// ExplainDecoding returns the problems in err, an error of a yaml.v3 decoder of any import
// path; none if err names no lines.
func ExplainDecoding(err error) (problems Problems) {
	for _, found := range decodingError().FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(found[1])
		p := Problem{Line: line, Text: found[2] + "; correct it"}
		if m := unknownField().FindStringSubmatch(found[2]); m != nil {
			p.Place, p.Text = m[1], "is not a known key; see the documentation"
		}
		problems = append(problems, p)
	}
	return problems
}

package diag

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// Read returns the content of a regular file of at most limit bytes. what names the kind
// of file it should be, such as "config file". The error begins with the path.
func Read(path, what string, limit int64) ([]byte, error) {
	if err := Check(path, what, limit); err != nil {
		return nil, err
	}
	// Without O_NONBLOCK, opening a named pipe that has replaced the file would wait.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(path, what, err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, unreadable(path, what, err)
	case int64(len(body)) > limit:
		return nil, tooLarge(path, what, limit)
	}
	return body, nil
}

// Check returns why Read would refuse to open the file at path, without opening it: a named
// pipe or a device may block its reader forever, or never end.
func Check(path, what string, limit int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return unreadable(path, what, err)
	}
	kind := "neither a file nor a directory"
	switch mode := info.Mode(); {
	case mode.IsRegular() && info.Size() > limit:
		return tooLarge(path, what, limit)
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return unreadable(path, what, syscall.EISDIR)
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe, such as | or <(…)"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%s: is %s, which may never end; write the %s into a regular file, and name that", path, kind, what)
}

func tooLarge(path, what string, limit int64) error {
	return fmt.Errorf("%s: larger than %d bytes, too large for a %s; name the right one", path, limit, what)
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
	return nil, explainSyntax(err, body)
}

// Pattern returns a regular expression that is compiled when it is first used.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	// syntaxError matches the prefix of yaml.v3's syntax errors.
	syntaxError = Pattern(`^yaml: (?:line ([0-9]+): )?`)
	// ofParser matches the errors of yaml.v3's parser, which counts the lines before the wrong one.
	ofParser = Pattern(`^did not find expected (key|node|','|'-'|<)|^found (undefined tag handle|duplicate %|incompatible)`)
)

// explainSyntax turns yaml.v3's error about body into a Problem. An error without a line, such as a
// wrong encoding, is about the file, and so about line 1.
func explainSyntax(err error, body []byte) *Problem {
	m := syntaxError().FindStringSubmatch(err.Error())
	line, text := 0, err.Error()
	if m != nil {
		line, _ = strconv.Atoi(m[1]) // "" is 0
		text = strings.TrimPrefix(text, m[0])
	}
	if ofParser().MatchString(text) {
		line++
	}
	// yaml.v3 counts the end of the file as a line.
	line = max(1, min(line, bytes.Count(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))+1))
	return &Problem{Line: line, Text: "not YAML: " + text + "; check quotes, and the indentation, which must be spaces"}
}

// The errors of yaml.v3's decoder, one per line.
var (
	decodingError = Pattern(`(?m)^  line ([0-9]+): (.*)$`)
	unknownField  = Pattern(`^field (.*) not found in type (\S+)$`)
	repeatedKey   = Pattern(`^mapping key "(.*)" already defined at line (\d+)$`)
	wrongType     = Pattern("^cannot unmarshal (!!\\w+)(?: `(.*)`)? into (\\S+)$")
)

// ExplainDecoding returns the problems in err, an error of a yaml.v3 decoder of any import
// path that decodes a file into root; none if err names no lines. wanted maps the name of a
// Go type to what to write for it, and "" to what to write for other types, whose values
// are not quoted.
func ExplainDecoding(err error, root reflect.Type, wanted map[string]string) (problems Problems) {
	for _, found := range decodingError().FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(found[1])
		p := Problem{Line: line, Text: found[2] + "; correct it"}
		if m := unknownField().FindStringSubmatch(found[2]); m != nil {
			p.Place, p.Text = m[1], "is not a known key"+Instead(m[1], YAMLKeys(root, m[2]))
		} else if m := repeatedKey().FindStringSubmatch(found[2]); m != nil {
			p.Place, p.Text = m[1], "is in line "+m[2]+" already; remove one of them"
		} else if m := wrongType().FindStringSubmatch(found[2]); m != nil {
			if _, known := wanted[m[3]]; known || wanted[""] != "" {
				p.Text = describe(m[1], m[2], known) + " where " + cmp.Or(wanted[m[3]], wanted[""])
			}
		}
		problems = append(problems, p)
	}
	return problems
}

func describe(tag, value string, quote bool) string {
	switch {
	case tag == "!!seq":
		return "a list"
	case tag == "!!map":
		return "keys"
	case !quote:
		return "a value"
	}
	return strconv.Quote(value)
}

// YAMLKeys returns the keys of the struct type called name, such as rulefmt.Rule, at or
// below t, in the order of its fields.
func YAMLKeys(t reflect.Type, name string) (keys []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case t.String() != name && key != "-":
			if keys = YAMLKeys(field.Type, name); keys != nil {
				return keys
			}
		case options == "inline":
			keys = append(keys, YAMLKeys(field.Type, field.Type.String())...)
		case key != "" && key != "-":
			keys = append(keys, key)
		}
	}
	return keys
}

package diag

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"gopkg.in/yaml.v3"
)

// NullTag is the tag of a value that is left empty.
const NullTag = "!!null"

// ParseYAML returns the root of the one document in body; where there is none, an empty
// value whose line is 0. Aliases are not followed. The problem is why body is not one
// document, nil if it is; it names no file.
func ParseYAML(body []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: NullTag}, nil
	case err != nil:
		return nil, explain(err, body)
	}
	switch err = decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return first.Content[0], nil
	case err != nil:
		return nil, explain(err, body)
	}
	return nil, &Problem{Line: second.Line, Text: "a second document begins here; keep one and remove the ---"}
}

// YAMLKind says what a value is in words.
func YAMLKind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias (*" + n.Value + ")"
	case n.Tag == NullTag:
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

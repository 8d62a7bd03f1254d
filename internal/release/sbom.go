package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// bom is a bill of materials in CycloneDX 1.6, limited to the fields that are set.
// https://cyclonedx.org/docs/1.6/json/
type bom struct {
	Schema       string          `json:"$schema"`
	BOMFormat    string          `json:"bomFormat"`
	SpecVersion  string          `json:"specVersion"`
	SerialNumber string          `json:"serialNumber"`
	Version      int             `json:"version"`
	Metadata     bomMetadata     `json:"metadata"`
	Components   []bomComponent  `json:"components"`
	Dependencies []bomDependency `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp string       `json:"timestamp,omitempty"`
	Component bomComponent `json:"component"`
}

type bomComponent struct {
	Type       string        `json:"type"`
	Ref        string        `json:"bom-ref"`
	Name       string        `json:"name"`
	Version    string        `json:"version"`
	Hashes     []bomHash     `json:"hashes,omitempty"`
	Licenses   []bomLicense  `json:"licenses"`
	PURL       string        `json:"purl"`
	Properties []bomProperty `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomLicense struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type bomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type bomDependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// writeSBOM writes the bill of materials of a program.
func writeSBOM(w io.Writer, p *program) error {
	body, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	id := sum // the same file has the same serial number
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	at, err := sourceDate()
	if err != nil {
		return err
	}
	main := p.component(hex.EncodeToString(sum[:]))
	b := bom{
		Schema:       "http://cyclonedx.org/schema/bom-1.6.schema.json",
		BOMFormat:    "CycloneDX",
		SpecVersion:  "1.6",
		SerialNumber: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		Version:      1,
		Metadata:     bomMetadata{Timestamp: at, Component: main},
	}
	contains := bomDependency{Ref: main.Ref}
	for i := range p.modules {
		c := component("library", p.modules[i].path, p.modules[i].version, p.modules[i].ids())
		b.Components = append(b.Components, c)
		contains.DependsOn = append(contains.DependsOn, c.Ref)
	}
	b.Dependencies = []bomDependency{contains}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(b)
}

// component returns the program itself. Its linker flags are unknown: go leaves them out with
// -trimpath.
func (p *program) component(sum string) bomComponent {
	c := component("application", p.info.Main.Path, cmp.Or(os.Getenv("VERSION"), p.info.Main.Version), []string{"Apache-2.0"})
	c.Name = filepath.Base(p.info.Path)
	c.Hashes = []bomHash{{"SHA-256", sum}}
	for _, s := range p.info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			c.Properties = append(c.Properties, bomProperty{"go:" + s.Key, s.Value})
		}
	}
	if revision := os.Getenv("REVISION"); revision != "" {
		c.Properties = append(c.Properties, bomProperty{"vcs.revision", revision})
	}
	return c
}

// component returns a module.
func component(kind, path, version string, ids []string) bomComponent {
	c := bomComponent{Type: kind, Name: path, Version: version, PURL: fmt.Sprintf("pkg:golang/%s@%s", path, version)}
	c.Ref = c.PURL
	for _, id := range ids {
		var l bomLicense
		l.License.ID = id
		c.Licenses = append(c.Licenses, l)
	}
	return c
}

// sourceDate returns the time in SOURCE_DATE_EPOCH; "" if it is not set.
func sourceDate() (string, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("$SOURCE_DATE_EPOCH is %q; give the seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
}

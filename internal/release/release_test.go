package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLicenses checks that every module linked into the program, for every platform, has a known
// licence; linked fails otherwise.
func TestLicenses(t *testing.T) {
	for _, env := range [][]string{
		{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"},
		{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"},
		{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"},
	} {
		modules, err := linked(t.Context(), "github.com/kpulse/kpulse-proxy/cmd/kpulse-proxy", env)
		if err != nil {
			t.Errorf("%v: %v", env, err)
			continue
		}
		var text strings.Builder
		if err := writeLicenses(&text, &program{modules: modules}); err != nil {
			t.Fatal(err)
		}
		// A module that is certainly linked, with a part whose licence is in a subdirectory.
		for _, want := range []string{
			"\ngithub.com/prometheus/client_golang v",
			"\ngithub.com/prometheus/client_golang: NOTICE\n",
			"\ngithub.com/prometheus/client_golang: internal/github.com/golang/gddo/LICENSE\n",
			"\nstdlib: LICENSE\n",
			"\nCopyright 2009 The Go Authors.",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%v: the licences lack %q", env, want)
			}
		}
	}
}

func TestIdentify(t *testing.T) {
	bsd := "Redistributions of source code must retain …\nRedistributions in binary form\n   must reproduce …\n"
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004": "Apache-2.0",
		bsd: "BSD-2-Clause",
		bsd + "… may be used to endorse or promote …":                                                                  "BSD-3-Clause",
		"Permission is hereby granted, free of charge, to any person\nobtaining a copy":                                "MIT",
		"Permission to use, copy, modify, and distribute this software … http://www.apache.org/licenses/LICENSE-2.0 …": "Apache-2.0 AND ISC",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                                         "",
		"The software is provided as is; ask us.":                                                                      "",
	} {
		if got := identify(text); got != want {
			t.Errorf("identify(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestNoLicense links a module without a known licence.
func TestNoLicense(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"go.mod":                 "module example.org/main\n\ngo 1.26.0\n\nrequire example.org/bare v1.0.0\n\nreplace example.org/bare => ./bare\n",
		"main.go":                "package main\n\nimport _ \"example.org/bare\"\n\nfunc main() {}\n",
		"bare/go.mod":            "module example.org/bare\n",
		"bare/bare.go":           "package bare\n",
		"bare/LICENSE":           "All rights reserved.\n",
		"bare/elsewhere/LICENSE": "Apache License\nVersion 2.0, January 2004\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	_, err := linked(t.Context(), ".", nil)
	if err == nil || !strings.Contains(err.Error(), "has no licence that we know; read its files") {
		t.Errorf("linked: %v", err)
	}
}

// TestOwnLicense: the project has the licence that its images and packages name.
func TestOwnLicense(t *testing.T) {
	own, err := licensesIn(filepath.Join("..", ".."), ".")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(own, func(l license) bool {
		return l.name == "LICENSE" && l.id == "Apache-2.0" && strings.Contains(l.text, "Copyright The kpulse-proxy Authors")
	}) {
		t.Error("LICENSE is not Apache-2.0 of The kpulse-proxy Authors")
	}
}

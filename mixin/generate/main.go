// Command generate writes the files that the mixin's jsonnet describes into the working directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kpulse/kpulse-proxy/mixin"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := mixin.Build(".")
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

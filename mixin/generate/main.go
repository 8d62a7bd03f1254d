// Command generate writes the files that the mixin's jsonnet describes into the working
// directory; with -fmt it formats the jsonnet instead.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kpulse/kpulse-proxy/mixin"
)

func main() {
	format := flag.Bool("fmt", false, "format the jsonnet files")
	flag.Parse()
	make := mixin.Build
	if *format {
		make = mixin.Format
	}
	if err := write(make); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write writes the files that make returns.
func write(make func(dir string) (map[string][]byte, error)) error {
	files, err := make(".")
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

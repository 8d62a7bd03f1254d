package app

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
)

func TestMain(m *testing.M) {
	environment.Clear()
	os.Exit(m.Run())
}

// configured returns the settings of arguments, environment and the content of a config file.
func configured(t *testing.T, file string, environment map[string]string, args ...string) *options {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yml")
		writeFile(t, path, file)
		args = append(args, "--config.file="+path)
	}
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

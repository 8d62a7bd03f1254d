package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

func TestLoadFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#\n", 1<<21)+"#"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{filepath.Join(dir, "none.yml"), ": no such file or directory; check the name of the config file"},
		{dir, ": is a directory; name a file in it"},
		{large, ": larger than 4194304 bytes, too large for a config file; name the right one"},
	} {
		if _, err := Load(test.path); err == nil || err.Error() != test.path+test.want {
			t.Errorf("got  %v\nwant %s", err, test.path+test.want)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(path, []byte("preset: ai\npoll: 3s\nhealth: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	problems, ok := err.(diag.Problems) //nolint:errorlint // it must be the error itself
	if !ok || len(problems) != 2 {
		t.Fatalf("%v", err)
	}
	if p := problems[0]; p.File != path || p.Line != 2 || p.Place != "poll" {
		t.Errorf("the first is %+v", p)
	}
	if p := problems[1]; p.File != path || p.Line != 3 || p.Place != "health" {
		t.Errorf("the second is %+v", p)
	}
}

const example = "../../deploy/config.example.yml"

// TestExample: the values that the example shows are the defaults.
func TestExample(t *testing.T) {
	got, err := Load(example)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(got.Config, want) {
		t.Errorf("got\n%+v, want\n%+v", got.Config, want)
	}
}

// offered matches the settings of the example that are commented out: no blank
// follows their #.
var offered = regexp.MustCompile(`(?m)^#(\S)`)

// uncommented returns the example with all settings enabled, without preset, which
// excludes weights.
func uncommented(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	text := offered.ReplaceAllString(string(body), "$1")
	return strings.Replace(text, "\npreset: ai\n", "\n", 1)
}

// TestExampleOffersWhatWorks: the settings that are commented out are valid.
func TestExampleOffersWhatWorks(t *testing.T) {
	c, err := Parse(example, []byte(uncommented(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 2 || len(c.Sources) != 3 || c.Judge.Weights == (canonical.Weights{}) {
		t.Errorf("got %d rows of the dialect, %d sources, weights %+v", len(c.Rows), len(c.Sources), c.Judge.Weights)
	}
}

package settings

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// lineBreak matches YAML's line breaks.
var lineBreak = regexp.MustCompile("[\r\n\u0085\u2028\u2029]")

// FuzzParse: no file makes Parse panic, accepted settings work, and refusals
// have a reason.
func FuzzParse(f *testing.F) {
	for _, test := range goodFiles {
		f.Add([]byte(test.text))
	}
	for _, test := range badFiles {
		f.Add([]byte(test.text))
	}
	f.Add([]byte("sources:\n- http_config: {proxy_url: 'http://proxy/ [', oauth2: {client_id: a, token_url: b, proxy_url: ''}}\n"))
	if body, err := os.ReadFile(example); err == nil {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := Parse("/work/fuzz.yml", body)
		if err != nil {
			checkProblems(t, err, len(lineBreak.FindAll(body, -1))+1)
			return
		}
		if _, err := compute.New(c.Judge); err != nil {
			t.Errorf("compute refuses: %v", err)
		}
		if _, err := translate.New(translate.Options{Rows: c.Rows}); err != nil {
			t.Errorf("translate refuses: %v", err)
		}
		if c.Limits.Series < 1 || c.Limits.MaxBody < 1 || c.Limits.MaxRequests < 1 {
			t.Errorf("limits are %+v", c.Limits)
		}
		showsItself(t, c)
	})
}

// checkProblems checks that err names lines of the file, and reasons.
func checkProblems(t *testing.T, err error, lines int) {
	var problems diag.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("the error is not a list of problems: %v", err)
	}
	for _, p := range problems {
		if p.File != "/work/fuzz.yml" || p.Text == "" || p.Line < 1 || p.Line > lines {
			t.Errorf("%d lines have the problem %+v", lines, p)
		}
	}
}

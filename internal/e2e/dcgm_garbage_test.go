package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// twoGPUs is a node with a wrapped dcgmi.
var twoGPUs = dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}

// TestDCGMGarbage: scrapers, the probe and the page report unexpected output of dcgmi.
func TestDCGMGarbage(t *testing.T) {
	slow.Test(t, "waits until children that print garbage are given up")
	t.Parallel()
	// Both kinds of control characters, invalid UTF-8, markup, and more text than fits a line.
	line := `You have \033[31mno\033[0m <b>mail</b>\302\233\377\007` + strings.Repeat(" and more", 100) + `\n`
	for _, c := range []struct{ name, dmon, others string }{
		{"all is one line", `printf "$line"; exec sleep 1000`, `printf "$line"; exec sleep 1000`},
		{"all goes on", `while :; do printf "$line"; sleep .1; done`, `while :; do printf "$line"; sleep .1; done`},
		{"all is endless", `exec yes "$(printf "$line")"`, `exec yes "$(printf "$line")"`},
		{"all is one line, and ends", `printf "$line"; exit 0`, `printf "$line"; exit 0`},
		{"dmon is one line", `printf "$line"; exec sleep 1000`, `exec "$0.real" "$@"`},
		{"dmon goes on", `while :; do printf "$line"; sleep .1; done`, `exec "$0.real" "$@"`},
		{"dmon is endless", `exec yes "$(printf "$line")"`, `exec "$0.real" "$@"`},
		{"dmon lacks a newline", `printf "${line%??}"; exec sleep 1000`, `exec "$0.real" "$@"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exe := dcgmtest.Wrap(t, twoGPUs, fmt.Sprintf("line='%s'\nif [ \"$1\" = dmon ]; then %s; else %s; fi\n", line, c.dmon, c.others))
			child := startDCGM(t, exe, "--dcgm.host="+dcgmtest.FarHost)
			// A child that prints no rows is ended after 5 s, and any other command after 7.
			body := awaitPage(t, child, "/metrics", http.StatusBadGateway, `You have`)
			ready := awaitPage(t, child, "/-/ready", http.StatusServiceUnavailable, `You have`)
			for _, text := range []string{body, ready} {
				if !strings.Contains(text, "You have  [31mno [0m <b>mail</b>") || !strings.Contains(text, "dcgmi --version") && !strings.Contains(text, "dcgmi discovery -l") {
					t.Errorf("no output of dcgmi, or no remedy: %q", text)
				}
				text = strings.ReplaceAll(text, "\n", " ") // a source, and a scrape of it that ran out of time
				if strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1000 {
					t.Errorf("%d bytes: %q", len(text), text)
				}
			}
			if landing := awaitPage(t, child, "/", 200, "You have"); strings.Contains(landing, "<b>") {
				t.Error("the page has its markup")
			}
			if n := strings.Count(child.Logged(), "source cannot be read"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, child.Logged())
			}
			if err := child.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

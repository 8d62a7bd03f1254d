package expose

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// healthy answers 200 while the process runs, whatever the state of the sources.
func healthy(w http.ResponseWriter, _ *http.Request) { answerText(w, "OK") }

// ready answers 200 once a source has a reading young enough to serve, or if having no source
// is correct; else 503. In both cases a line for each source that cannot be read gives the
// reason, and further lines say if there is no source and if scrapes get 503.
func ready(set *Set, absent func() *canonical.Failure, used func() usage) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var reasons []string
		if u := used(); u.full(0) {
			reasons = append(reasons, fmt.Sprintf("further scrapes get 503 now: all places of --web.max-requests=%d are taken", u.Max))
		}
		sources, ready := set.now(), false
		if len(sources) == 0 && absent != nil {
			if failure := absent(); failure != nil {
				reasons = append(reasons, "no source: "+failure.Error())
			} else {
				ready = true
				reasons = append(reasons, "there is no source now")
			}
		}
		for _, f := range sources {
			state, err := f.Status()
			ready = ready || err == nil
			lines := troubles(f, &state)
			if err != nil && lines == nil {
				lines = []string{reason(f, err)}
			}
			reasons = append(reasons, lines...)
		}
		text := strings.Join(reasons, "\n")
		switch {
		case !ready:
			answerError(w, text, http.StatusServiceUnavailable)
		case text != "":
			answerText(w, "ready\n"+text)
		default:
			answerText(w, "ready")
		}
	}
}

// troubles returns why the last scrape of f got no reading, one line for each reason.
func troubles(f Source, state *canonical.Source) (lines []string) {
	for _, failure := range []*canonical.Failure{state.Failure, state.Late} {
		if failure != nil {
			lines = append(lines, reason(f, failure))
		}
	}
	return lines
}

// reload calls run, which reads config and rules again, and answers with its error. It answers
// 403 if run is nil.
func reload(run func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if run == nil {
			answerError(w, "reloading over HTTP is off; start with --web.enable-lifecycle, or send SIGHUP", http.StatusForbidden)
			return
		}
		if err := run(); err != nil {
			answerError(w, "nothing was reloaded: "+err.Error(), http.StatusInternalServerError)
			return
		}
		answerText(w, "reloaded")
	}
}

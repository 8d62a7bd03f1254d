package expose

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

//go:embed landing.html
var landingPage string

// landing answers / with the state of each source for a human.
type landing struct {
	feeds []Feed
	pprof bool
	page  *template.Template
}

func newLanding(feeds []Feed, pprof bool) (*landing, error) {
	page, err := template.New("landing").Parse(landingPage)
	return &landing{feeds, pprof, page}, err
}

// landingView is what the page shows.
type landingView struct {
	Version string
	Pprof   bool
	Sources []sourceView
}

// sourceView is what the page shows of one source.
type sourceView struct {
	canonical.Source
	Up      bool
	NotUp   string // why, if it is not up and that is no Failure
	Age     string // of the last reading that worked, "" if there was none
	Missing []string
}

// ServeHTTP implements http.Handler.
func (l *landing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	view := landingView{Version: version.Version, Pprof: l.pprof}
	now := time.Now()
	for _, f := range l.feeds {
		state, ready := f.Status()
		view.Sources = append(view.Sources, viewOf(state, ready, now))
	}
	var b bytes.Buffer
	if err := l.page.Execute(&b, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(b.Bytes())
}

// viewOf returns what to show of a source at an instant.
func viewOf(state canonical.Source, ready error, now time.Time) sourceView {
	v := sourceView{Source: state, Up: state.Failure == nil && ready == nil}
	if !v.Up && state.Failure == nil {
		v.NotUp = ready.Error()
	}
	if !state.At.IsZero() {
		v.Age = max(0, now.Sub(state.At)).Round(time.Second).String()
	}
	for i, f := range state.Missing {
		if name := canonical.Fields[f].Name; i == 0 || canonical.Fields[state.Missing[i-1]].Name != name {
			v.Missing = append(v.Missing, name)
		}
	}
	return v
}

package expose

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

//go:embed landing.html
var landingPage string

// landing answers / with the state of each source for a human.
type landing struct {
	*Options
	page    *template.Template
	history history
}

func newLanding(opts *Options) (*landing, error) {
	page, err := template.New("landing").Parse(landingPage)
	return &landing{Options: opts, page: page, history: history{sources: opts.Sources, devices: map[historyKey]*points{}}}, err
}

// Recording is the state of the recording of the readings.
type Recording struct {
	File string
	// Failure is why nothing can be written now, "" if all is well; Remedy is what to do.
	Failure, Remedy string
	Missed          int // readings that were not recorded
}

// documentation is where the repository's pages are.
const documentation = "https://github.com/kpulse/kpulse-proxy/blob/main"

// frozenAfter is how long all values of a source must be unchanged for it to count as frozen: even
// on idle GPUs, power and temperature change sooner.
const frozenAfter = 5 * time.Minute

// sourceView is the content of the page for one source.
type sourceView struct {
	canonical.Source
	State   string // up, too slow, no GPU, not ready or down
	Reason  string // why it is not ready, if that is no Failure
	Age     string // of the last reading that worked, "" if there was none
	Frozen  string // how long no value had changed then, "" up to frozenAfter
	Away    []canonical.Device
	Named   []canonical.Device // those that the source names and has not read
	Missed  []canonical.Device // those that are expected and were never seen
	Missing []string
	Blank   []string // those of Missing that the source serves without a usable value
	Lines   []string // to add to an exporter's list of counters for the others
	GPUs    []gpuView
}

// ServeHTTP implements http.Handler.
func (l *landing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.history.add()
	view := struct {
		*Options
		Version    string
		Docs       string
		Saturating string
		Refresh    int // seconds
		Counts     []stateCount
		Views      []sourceView
	}{Options: l.Options, Version: version.Version, Docs: documentation, Saturating: canonical.Saturating, Refresh: int(historyEvery.Seconds())}
	for _, f := range l.Sources.now() {
		view.Views = append(view.Views, l.view(f))
	}
	view.Counts = countStates(view.Views)
	var b bytes.Buffer
	if err := l.page.Execute(&b, &view); err != nil {
		answerError(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Browsers run no scripts in the page, load nothing for it, send no forms from it, frame it in
	// no other page, and tell no other site its address.
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "deny")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = io.WriteString(w, diag.Lines(b.String())) // a write error cannot be reported
}

// view returns the view of a source now.
func (l *landing) view(f Source) sourceView {
	state, ready := f.Status()
	v := sourceView{Source: state, State: "up", Missing: canonical.NamesOf(state.Missing), Blank: canonical.NamesOf(state.Unusable)}
	switch {
	case state.Failure != nil || ready != nil && state.Late != nil:
		v.State = "down"
	case ready != nil:
		v.State, v.Reason = "not ready", ready.Error()
	case state.Late != nil:
		v.State = "too slow"
	case state.Devices == 0:
		v.State = "no GPU"
	}
	if !state.At.IsZero() {
		v.Age = max(0, time.Since(state.At)).Round(time.Second).String()
	}
	if frozen := state.At.Sub(state.ChangedAt); !state.ChangedAt.IsZero() && frozen > frozenAfter {
		v.Frozen = frozen.Round(time.Second).String()
	}
	if roster := state.Roster; roster != nil {
		for _, d := range roster.Devices[roster.Present:] {
			if !d.IsInstance() && !roster.HeldOnly {
				v.Away = append(v.Away, d)
			}
		}
		v.Named, v.Missed = roster.Missed[:roster.Named], roster.Missed[roster.Named:]
	}
	if v.Lines = state.ConfigFields; v.Lines == nil && l.Lines != nil && state.Backend == "prometheus" {
		v.Lines = l.Lines(slices.DeleteFunc(slices.Clone(state.Missing), func(f canonical.Field) bool { return slices.Contains(state.Unusable, f) }))
	}
	v.addDevices(f, &l.history)
	return v
}

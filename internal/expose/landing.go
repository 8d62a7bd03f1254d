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
	opts  *Options
	usage func() usage // of the places
	page  *template.Template
}

func newLanding(opts *Options, used func() usage) (*landing, error) {
	page, err := template.New("landing").Parse(landingPage)
	return &landing{opts, used, page}, err
}

// Recording is the state of the recording of the readings.
type Recording struct {
	File string
	// Failure is why nothing can be written now, "" if all is well; Remedy is what to do.
	Failure, Remedy string
	Missed          int // readings that were not recorded
}

// frozenAfter is how long all values of a source must be unchanged for it to count as frozen: even
// on idle GPUs, power and temperature change sooner.
const frozenAfter = 5 * time.Minute

// mostMissed is how many boards that were never seen are listed; the others are only counted.
const mostMissed = 8

const (
	// mostUnknown is how many families without a canonical name are listed; the others are only
	// counted. An exporter has some.
	mostUnknown = 50
	// longestName is how many bytes of such a name are shown. Names of exporters have some 60.
	longestName = 120
)

// landingView is the content of the page.
type landingView struct {
	*Options
	Version   string
	Recording *Recording
	Notes     []canonical.Note
	Usage     usage
	Sources   []sourceView
}

// Full reports whether the next scrape gets 503. The page's own place does not count.
func (v *landingView) Full() bool { return v.Usage.full(1) }

// Cut reports whether clients were cut.
func (v *landingView) Cut() bool { return v.Usage.CutForRate+v.Usage.CutForPlace > 0 }

// sourceView is the content of the page for one source.
type sourceView struct {
	canonical.Source
	Up     bool
	Empty  bool   // it is up, without a GPU in its reading
	Slow   bool   // it is up, but a scrape ran out of time
	NotUp  string // why it is not up, if that is no Failure
	Age    string // of the last reading that worked, "" if there was none
	Frozen string // how long no value had changed then, "" up to frozenAfter
	absentBoards
	Missing []string
	Blank   []string // those of Missing that the source serves without a usable value
	Lines   []string // to add to an exporter's list of counters for the others
	GPUs    []gpuView
	More    int      // how many more devices there are
	Unknown []string // the first families without a canonical name
	Unnamed int      // how many more have none
}

// absentBoards are the boards that are not in the reading.
type absentBoards struct {
	Gone   []canonical.Device // those that are remembered
	Named  []canonical.Device // the first ones that the source names and has not read
	Missed []canonical.Device // the first ones that are expected and were never seen
	Others int                // how many more were never seen
}

// ServeHTTP implements http.Handler.
func (l *landing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	view := landingView{Options: l.opts, Version: version.Version, Usage: l.usage()}
	if l.opts.Recording != nil {
		state := l.opts.Recording()
		view.Recording = &state
	}
	if l.opts.Notes != nil {
		view.Notes = l.opts.Notes()
	}
	now := time.Now()
	for _, f := range l.opts.Sources.now() {
		state, ready := f.Status()
		source := viewOf(state, ready, now)
		source.addAbsent(state.Roster)
		source.addUnknown(state.UnknownFamilies)
		source.addDevices(f)
		if l.opts.Lines != nil && state.Backend == "prometheus" {
			source.Lines = l.opts.Lines(slices.DeleteFunc(slices.Clone(state.Missing), func(f canonical.Field) bool { return slices.Contains(state.Unusable, f) }))
		}
		view.Sources = append(view.Sources, source)
	}
	var b bytes.Buffer
	if err := l.page.Execute(&b, &view); err != nil {
		answerError(w, err.Error(), http.StatusInternalServerError)
		return
	}
	guardPage(w.Header())
	_, _ = io.WriteString(w, diag.Lines(b.String())) // a write error cannot be reported
}

// viewOf returns the view of a source at an instant.
func viewOf(state canonical.Source, ready error, now time.Time) sourceView {
	v := sourceView{Source: state, Up: state.Failure == nil && ready == nil}
	v.Slow = v.Up && state.Late != nil
	v.Empty = v.Up && !v.Slow && state.Devices == 0
	if !v.Up && state.Failure == nil && state.Late == nil {
		v.NotUp = ready.Error()
	}
	if !state.At.IsZero() {
		v.Age = max(0, now.Sub(state.At)).Round(time.Second).String()
	}
	if frozen := state.At.Sub(state.ChangedAt); !state.ChangedAt.IsZero() && frozen > frozenAfter {
		v.Frozen = frozen.Round(time.Second).String()
	}
	v.Missing, v.Blank = canonical.NamesOf(state.Missing), canonical.NamesOf(state.Unusable)
	return v
}

// addAbsent adds the boards of roster, which may be nil, that are not in the
// reading.
func (v *sourceView) addAbsent(roster *canonical.Roster) {
	if roster == nil {
		return
	}
	for _, d := range roster.Devices[roster.Present:] {
		if !d.IsInstance() {
			v.Gone = append(v.Gone, d)
		}
	}
	shown := min(len(roster.Missed), mostMissed)
	v.Named = roster.Missed[:min(roster.Named, shown)]
	v.Missed = roster.Missed[len(v.Named):shown]
	v.Others = len(roster.Missed) - shown
}

// addUnknown adds the first families without a canonical name, and counts the others.
func (v *sourceView) addUnknown(families []string) {
	for _, name := range families[:min(len(families), mostUnknown)] {
		v.Unknown = append(v.Unknown, diag.Short(name, longestName))
	}
	v.Unnamed = len(families) - len(v.Unknown)
}

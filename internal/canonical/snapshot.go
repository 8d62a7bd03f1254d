package canonical

import "time"

// Snapshot is one reading with all that was derived from it. It is immutable while it is
// published.
type Snapshot struct {
	Frame     Frame
	Verdicts  []Verdict // one for each device of the Frame
	Judgement *Judgement
	Ledger    Ledger

	// Body is the upstream's exposition byte for byte; Valid are the parts of it, whole lines in
	// order, that a Prometheus server accepts and that are not our own series. Both are empty if
	// the source is not an exposition.
	Body  []byte
	Valid [][]byte
	// Text writes the upstream's exposition on request if the source's readings come without one;
	// nil otherwise.
	Text Text
	// Further are families that the upstream's exposition lacks; nil for none.
	Further Families

	// Host is the machine that the devices are in. It is nil if the source reads another machine,
	// or if nothing reads this one.
	Host *Host

	Source Source
}

// Text is an exposition that is written on request.
type Text interface {
	// AppendText appends it to dst, in whole lines that Prometheus accepts. It may be
	// called from any goroutine that holds the Snapshot.
	AppendText(dst []byte) []byte
}

// Families is an exposition that is written family by family, on request. Its methods may be
// called from any goroutine that holds the Snapshot.
type Families interface {
	// Len is how many families there can be, including empty ones. A number means the same family
	// for all sources of the program.
	Len() int
	// Begun reports whether the upstream's own exposition has lines of a family.
	Begun(family int) bool
	// AppendFamily appends the series of a family for the devices, by their index in the Topology,
	// that shown selects. If there are any and header is set, HELP and TYPE go first.
	AppendFamily(dst []byte, family int, header bool, shown func(device int) bool) []byte
}

// Source is the state of a source after a reading, successful or failed.
type Source struct {
	Name        string // label `source`; holds no credentials
	Backend     string
	Aggregation string        // point or window
	Version     string        // of the program or library behind it, "" if unknown
	Period      time.Duration // of a stream; 0 if there is none

	// Failure is nil after a successful reading.
	Failure *Failure
	// Late is why a scrape got no reading in time, although a read may be under way or other
	// scrapes may have got it; nil after a reading that no scrape missed.
	Late *Failure
	// Streams are those of a source that reads several, in a fixed order; entries without a Name
	// are unused.
	Streams [MaxStreams]Stream
	// At is when the last good reading was requested, Took how long it took.
	At   time.Time
	Took time.Duration
	// ChangedAt is the time of the latest reading in which any value differed from
	// the previous one; zero while there is no reading that changes by itself, such as power.
	ChangedAt time.Time

	// Notes are problems that do not stop readings. They are immutable.
	Notes []Note
	Content
	Totals
}

// Content is what the last good reading of a source held.
type Content struct {
	Devices, Samples int
	// Roster lists the devices of the source, and those that it should have.
	Roster *Roster
	// Missing are the inputs of our scores that no device has.
	Missing []Field
	// Unusable are those of Missing that the source serves without a usable value.
	Unusable []Field
	// ConfigFields are what to set in the exporter's config file for the readings of Missing, nil if it takes a counters file.
	ConfigFields []string
	// NotGiven names what the user wants passed on but the source cannot give.
	NotGiven []string
	// UnknownFamilies are upstream families that look like GPU readings but have no name of ours,
	// sorted.
	UnknownFamilies []string
	// Further are the names, sorted, of the families of Snapshot.Further that have series.
	Further []string
}

// Totals count what the readings of a source left out, since the process started.
type Totals struct {
	SkippedLines    uint64
	DroppedValues   [NumDropReasons]uint64
	Drops           Births // of DroppedValues
	ClampedValues   uint64
	DroppedFamilies uint64
	DroppedSeries   uint64
	// DroppedAllocations counts those beyond the limit of the ledger.
	DroppedAllocations uint64
}

// MaxStreams is how many streams a source can have.
const MaxStreams = 2

// Stream is one of the streams of a source. Its totals are since the
// process started.
type Stream struct {
	Name     string   // label `stream`
	Ticks    uint64   // complete ticks that came, including evicted ones
	Missed   uint64   // ticks that did not come in time
	Evicted  uint64   // ticks that newer ones replaced before they were read
	Restarts uint64   // times it was restarted
	Bytes    uint64   // bytes read, 0 if the stream is not text
	Failure  *Failure // why it is down, nil while it is up
	// MissedAt is when the last missed tick was due, the zero Time if there is none.
	MissedAt time.Time
}

// DropReason is why a value was dropped.
type DropReason uint8

// The reasons, in the order of the exposition.
const (
	DropBlank DropReason = iota
	DropNotFinite
	DropOutOfRange
	DropUnitUnknown
	DropStale
	DropLabelTooLong // a label of the sample is too long
	NumDropReasons
)

// DropReasons is indexed by DropReason.
var DropReasons = [NumDropReasons]string{
	DropBlank:       "blank",
	DropNotFinite:   "not_finite",
	DropOutOfRange:  "out_of_range",
	DropUnitUnknown: "unit_unknown",
	DropStale:       "stale",

	DropLabelTooLong: "label_too_long",
}

// TimedOut is how much time a reading was given. As the cause of a context
// (context.WithTimeoutCause) it lets a failure name that time instead of the measured one, which
// is longer on a busy machine.
type TimedOut time.Duration

// Error names the time.
func (t TimedOut) Error() string { return "no answer within " + time.Duration(t).String() }

// Note is a problem that does not stop readings. Both fields are one line each, as in a Failure.
type Note struct{ Cause, Remedy string }

// Failure is why nothing could be read. It is an error.
type Failure struct {
	Kind    string // one stable word, such as timeout or bad_status
	Timeout bool   // the source was too slow, rather than broken
	Cause   string // one line: what was tried and what went wrong
	Remedy  string // one line: what to do next
}

// Error returns cause and remedy on one line.
func (f *Failure) Error() string {
	if f.Remedy == "" {
		return f.Cause
	}
	return f.Cause + "; " + f.Remedy
}

package raw

import (
	"math"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// ownPrefix starts the names of the proxy's own metric families. Families of an
// upstream that carry it come from a proxy behind this one.
const ownPrefix = "kpulse_"

// none is no id.
const none = math.MaxUint32

// Limits of one scan, far above what exporters have (about 500 families, and 61 thousand samples
// for 1024 devices × 60 fields). They keep a hostile body from growing tables 30 times its size.
const (
	maxFamilies = 1 << 14
	maxBlocks   = 1 << 18
	MaxSamples  = 1 << 21 // also the most that are worth room in advance
)

// fitsEvery is the number of new label blocks after which Fits is asked, and blockBytes what each may take beside its
// text: the tables double.
const (
	fitsEvery  = 1024
	blockBytes = 100
)

// A Scanner reads expositions of one source, as package exposition does: it accepts and rejects
// what a Prometheus server would, in its parser and in the check of labels after it.
//
// A scrape mostly repeats the previous one, so a Scanner remembers which label block followed which
// and compares before it parses. Bytes equal to a block that was once accepted are accepted again,
// so a hint never changes a result.
//
// The zero value is ready to use. A Scanner is not safe for concurrent use.
type Scanner struct {
	dict       *Dict
	generation uint64
	scan       uint32 // number of the current scan

	// By id of the Dict.
	blocks   []blockNote
	families []familyNote

	// Of the current scan or, after it, the last one.
	text         string // the Body
	out          *Batch
	usedBlocks   int // distinct ones
	usedFamilies int
	position

	// Fits reports whether label blocks of so many bytes fit into memory, and Full is set if they did not: the
	// Body was not read to its end then. A nil Fits sets no limit.
	Fits  func(bytes int64) bool
	Full  bool
	asked int // the blocks known when Fits was asked

	own     map[string]bool // names with ownPrefix, parts of text
	scratch []byte
	labels  []Label
}

// position is where a scan is, and what is likely to come next.
type position struct {
	family   uint32 // of the previous line
	name     string // its name, "" if there is none or it is in quotes
	previous uint32 // the block of the previous line, none at a family's start
	expected uint32 // the block that is likely next
	first    uint32 // the first block of the previous family
}

// blockNote is what a Scanner remembers about a label block.
type blockNote struct {
	next uint32 // the block that followed it last time, or none
	scan uint32 // the last scan that saw it
	// plain is set if it was accepted after a metric name.
	plain bool
}

// familyNote is what a Scanner remembers about a family.
type familyNote struct {
	scan, help uint32 // the last scans that saw it and its HELP
}

// Scan reads b.Body and sets b.Samples, b.Omit, b.Skipped, b.OwnFamilies,
// b.Excess and b.Meaningful. It adds names and label blocks to b.Dict, except those of
// rejected lines.
//
// If label sets have come and gone until the Dict has more than twice what the
// previous scan used, Scan compacts it first: its generation changes, and the ids
// in every Batch that was scanned earlier are void.
func (s *Scanner) Scan(b *Batch) {
	if b.Dict == nil {
		b.Dict = NewDict()
	}
	b.Samples, b.Stamps, b.Omit = b.Samples[:0], b.Stamps[:0], b.Omit[:0]
	b.Skipped, b.OwnFamilies, b.Meaningful, b.Excess = 0, 0, 0, false
	s.begin(b)
	for i := 0; i < len(s.text) && !b.Excess; {
		// As long as a line has the family of the previous one, the label block that followed
		// last time, and a value without a timestamp, nothing else is looked at.
		t, name, samples := s.text, s.name, b.Samples
		for name != "" {
			block := i + len(name)
			if block >= len(t) || t[block] != '{' || t[i:block] != name {
				break
			}
			if s.expected >= uint32(len(s.blocks)) || !strings.HasPrefix(t[block:], s.dict.blocks[s.expected]) {
				break
			}
			value, millis, next, ok := exposition.ReadValue(t, block+len(s.dict.blocks[s.expected]))
			if !ok || millis != exposition.NoTimestamp {
				break
			}
			samples = append(samples, Sample{Family: s.family, Labels: s.expected, Value: value})
			s.follow(s.expected)
			i = next
		}
		b.Meaningful += len(samples) - len(b.Samples)
		if b.Samples = samples; i < len(t) {
			i = s.entry(i)
		}
		if known := len(s.dict.blocks); known >= s.asked+fitsEvery && s.Fits != nil {
			s.Full = !s.Fits(int64(known) * blockBytes)
			s.asked = known
		}
		b.Excess = s.Full || s.usedFamilies > maxFamilies || s.usedBlocks > maxBlocks || len(b.Samples) > MaxSamples
	}
	for id := range s.families { // a HELP must be from the scan that it is read with
		if s.families[id].help != s.scan {
			s.dict.families[id].Help = ""
		}
	}
	// The Body is the reader's again, and may change.
	clear(s.own)
	clear(s.labels[:cap(s.labels)])
	s.text, s.out = "", nil
}

// begin readies s for a scan of b.
func (s *Scanner) begin(b *Batch) {
	if s.dict != b.Dict || s.generation != b.Dict.Generation() {
		s.forget(b.Dict)
	}
	if overgrown(b.Dict.Blocks(), s.usedBlocks) || overgrown(b.Dict.Families(), s.usedFamilies) {
		b.Dict.Compact(
			func(id uint32) bool { return int(id) < len(s.families) && s.families[id].scan == s.scan },
			func(id uint32) bool { return int(id) < len(s.blocks) && s.blocks[id].scan == s.scan },
		)
		s.forget(b.Dict)
	}
	if s.own == nil {
		s.own = map[string]bool{}
	}
	s.scan++
	s.usedBlocks, s.usedFamilies = 0, 0
	s.family, s.name = none, ""
	s.previous, s.expected = none, s.first
	s.out = b
	s.text = exposition.View(b.Body) // not modified while Scan runs
}

// overgrown reports whether most of a table's known entries were unused by the last scan. One that
// used none was of an upstream in trouble and does not count.
func overgrown(known, used int) bool { return used > 0 && known > 2*used+1024 }

// forget drops all that s remembers by id, for the ids of d.
func (s *Scanner) forget(d *Dict) {
	s.dict, s.generation = d, d.Generation()
	s.blocks, s.families = nil, nil
	s.usedBlocks, s.usedFamilies = d.Blocks(), d.Families()
	s.first, s.asked = none, 0
}

// entry reads the entry at i and returns where the next one starts.
func (s *Scanner) entry(i int) int {
	if next := s.knownBlock(i); next > i {
		return next
	}
	e := exposition.Next(s.text, i)
	switch e.Kind {
	case exposition.Malformed:
		s.omit(i, e.End)
		s.out.Skipped++
		s.unescaped(s.text[i:e.End])
	case exposition.Help, exposition.Type:
		s.header(&e)
	case exposition.Series:
		s.series(&e)
	}
	return e.End
}

// refused reports whether a server refuses the names of a sample. A label block that
// was once accepted is not checked again: it is accepted after any metric name.
func (s *Scanner) refused(e *exposition.Entry) bool {
	s.labels = s.labels[:0]
	if id, known := s.dict.blockID[e.Labels]; !known || int(id) >= len(s.blocks) || s.blocks[id].scan == 0 {
		s.labels = exposition.ParseLabels(e.Labels, s.labels)
	}
	return e.Refused(s.labels)
}

// knownBlock reads the series at i if its block is known, and returns the next line, or i.
func (s *Scanner) knownBlock(i int) int {
	t := s.text
	end := exposition.NameEnd(t, i)
	if end == i || end == len(t) || t[end] != '{' {
		return i
	}
	name := t[i:end]
	expected := s.expected
	if name != s.name {
		expected = s.first
	}
	id, ok := s.findBlock(end, expected)
	if !ok {
		return i
	}
	value, millis, next, ok := exposition.ReadValue(t, end+len(s.dict.blocks[id]))
	if !ok || strings.HasPrefix(name, ownPrefix) {
		return i
	}
	if name != s.name {
		s.startFamily(name)
	}
	s.sample(id, value, millis)
	s.follow(id)
	return next
}

// findBlock returns the id of the label block at i if it was accepted after a metric name before.
func (s *Scanner) findBlock(i int, expected uint32) (id uint32, ok bool) {
	if expected < uint32(len(s.blocks)) && strings.HasPrefix(s.text[i:], s.dict.blocks[expected]) {
		return expected, true
	}
	// Most blocks end at the first brace of their line, and a lookup costs less than a parse. The
	// search stays in the line: else it would read a hostile body once for each of its lines.
	line := s.text[i:exposition.NextLine(s.text, i)]
	id, ok = s.dict.blockID[line[:strings.IndexByte(line, '}')+1]]
	return id, ok && int(id) < len(s.blocks) && s.blocks[id].plain
}

// series handles a sample.
func (s *Scanner) series(e *exposition.Entry) {
	if strings.HasPrefix(e.Name, ownPrefix) {
		s.leaveOut(e)
		return
	}
	if s.refused(e) {
		s.omit(e.Start, e.End)
		s.out.Skipped++
		return
	}
	if e.Name != s.name {
		s.startFamily(e.Name)
	}
	id := s.noted(s.dict.blockOf(e.Labels))
	s.sample(id, e.Value, e.Millis)
	// A later line matches a plain block by its text alone, unparsed. "", of a series
	// without braces, is not plain: any text begins with it.
	if s.blocks[id].plain = e.Labels != ""; e.Labels == "" {
		s.use(id)
		return
	}
	s.follow(id)
}

// noted returns the id of a block, after adding a note of it if there is none.
func (s *Scanner) noted(id uint32) uint32 {
	for int(id) >= len(s.blocks) {
		s.blocks = append(s.blocks, blockNote{next: none})
	}
	return id
}

// unescaped takes the sample of a line that is malformed only in the values of some labels,
// without these labels: they are of a job or a pod. The line is still not passed on.
func (s *Scanner) unescaped(line string) {
	name, block, value, millis, ok := exposition.ReadUnescaped(s.scratch[:0], line)
	s.scratch = block
	if !ok || strings.HasPrefix(name, ownPrefix) {
		return
	}
	if name != s.name {
		s.startFamily(name)
	}
	id := s.noted(s.dict.BlockID(block))
	s.sample(id, value, millis)
	s.out.Meaningful-- // sample counted it, but the line does not parse
	s.use(id)
}

// header handles a HELP or TYPE entry. The first HELP of a family counts, as the first
// sample of a series does.
func (s *Scanner) header(e *exposition.Entry) {
	if strings.HasPrefix(e.Name, ownPrefix) {
		s.leaveOut(e)
		return
	}
	if e.Refused(nil) {
		s.omit(e.Start, e.End)
		s.out.Skipped++
		return
	}
	s.out.Meaningful++
	if e.Kind == exposition.Type {
		return
	}
	if e.Name != s.name {
		s.startFamily(e.Name)
	}
	note := &s.families[s.family]
	if note.help == s.scan {
		return
	}
	note.help = s.scan
	if f := s.dict.Family(s.family); f.Help != e.Text {
		f.Help = strings.Clone(e.Text)
	}
}

// startFamily makes the family of a name the current one.
func (s *Scanner) startFamily(name string) {
	s.family, s.previous, s.expected = s.dict.familyOf(name), none, s.first
	s.name = s.dict.families[s.family].Name // the Dict's copy, which does not change with the Body
	for int(s.family) >= len(s.families) {
		s.families = append(s.families, familyNote{})
	}
	if s.families[s.family].scan != s.scan {
		s.families[s.family].scan = s.scan
		s.usedFamilies++
	}
}

// sample adds a sample of the current family.
func (s *Scanner) sample(id uint32, value float64, millis int64) {
	s.out.Samples = append(s.out.Samples, Sample{Family: s.family, Labels: id, Value: value})
	if millis != exposition.NoTimestamp {
		s.out.Stamps = append(s.out.Stamps, Stamp{Sample: len(s.out.Samples) - 1, Millis: millis})
	}
	s.out.Meaningful++
}

// use notes that the label block id occurs in this scan.
func (s *Scanner) use(id uint32) {
	if s.blocks[id].scan != s.scan {
		s.blocks[id].scan = s.scan
		s.usedBlocks++
	}
}

// follow notes that a series with block id was read, and what to expect next.
func (s *Scanner) follow(id uint32) {
	s.use(id)
	if s.previous == none {
		s.first = id
	} else if s.expected != id {
		s.blocks[s.previous].next = id
	}
	s.previous, s.expected = id, s.blocks[id].next
}

// leaveOut keeps e, of a family of our own, from being passed on or sampled.
func (s *Scanner) leaveOut(e *exposition.Entry) {
	s.omit(e.Start, e.End)
	s.out.Meaningful++
	if len(s.own) < maxFamilies {
		s.own[e.MetricName()] = true
	}
	s.out.OwnFamilies = len(s.own)
}

// omit adds [i, next) to the spans that are not passed on.
func (s *Scanner) omit(i, next int) {
	if n := len(s.out.Omit); n > 0 && s.out.Omit[n-1].End == i {
		s.out.Omit[n-1].End = next
		return
	}
	s.out.Omit = append(s.out.Omit, Span{i, next})
}

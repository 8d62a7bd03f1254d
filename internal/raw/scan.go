package raw

import (
	"math"
	"strings"
	"unsafe"
)

// ownPrefix starts the names of the proxy's own metric families. Families of an
// upstream that carry it come from a proxy behind this one.
const ownPrefix = "kpulse_"

// none stands for no id.
const none = math.MaxUint32

// Limits of one scan. They are far above what exporters have (some 500 families; a
// label set for each device and pod; 61 thousand samples for 1024 devices × 60
// fields) and keep a hostile body from growing tables 30 times its size.
const (
	maxFamilies = 1 << 14
	maxBlocks   = 1 << 18
	maxSamples  = 1 << 21
)

// A Scanner reads expositions of one source. It accepts and rejects what
// Prometheus' textparse.PromParser does, to the byte, were that parser restarted
// at the next line after each line that it rejects.
//
// A scrape mostly repeats the one before it, so a Scanner remembers which label
// block followed which and compares before it parses. Bytes equal to a block that
// was once accepted are accepted again; thus a hint can be of no use, but never
// change a result.
//
// The zero value is ready to use. A Scanner is not safe for concurrent use.
type Scanner struct {
	dict       *Dict
	generation uint64
	scan       uint32 // number of the current scan

	// By id of the Dict.
	blocks   []blockNote
	families []familyNote

	// Of the current scan, or else the last one.
	text         string // the Body
	out          *Batch
	usedBlocks   int // distinct ones
	usedFamilies int

	family   uint32 // that of the line before
	name     string // its name, "" unless one that is written without quotes
	previous uint32 // the block of the line before, none at a family's start
	expected uint32 // the block that is likely next
	first    uint32 // the block that the family before this one began with

	helped []uint32 // the families of the HELP lines, in the order of the last scan
	helps  int      // how many HELP lines there were so far

	own     *Dict    // the names with ownPrefix
	ownSeen []uint32 // by id of own: the last scan that saw it
	usedOwn int
	scratch []byte
}

// blockNote is what a Scanner remembers of a label block.
type blockNote struct {
	next uint32 // the block that came behind it last time, or none
	scan uint32 // the last scan that saw it
	// plain says that scanBlock accepted it and found no metric name in it.
	plain bool
}

// familyNote is what a Scanner remembers of a family.
type familyNote struct {
	scan, help uint32 // the last scan that saw it, and its HELP
	// The last header lines of it that were accepted, newlines included; "" if
	// there was none, or its name stood in quotes.
	helpLine, typeLine string
}

// Scan reads b.Body and sets b.Samples, b.Omit, b.Skipped, b.OwnFamilies,
// b.Excess and b.Meaningful. Names and label blocks are added to b.Dict, but none of a line
// that is rejected.
//
// If label sets have come and gone so that the Dict holds more than twice what
// the scan before used, Scan compacts it first: then its generation changes, and
// the ids in every Batch that was scanned earlier are void.
func (s *Scanner) Scan(b *Batch) {
	if b.Dict == nil {
		b.Dict = NewDict()
	}
	b.Samples, b.Stamps, b.Omit = b.Samples[:0], b.Stamps[:0], b.Omit[:0]
	b.Skipped, b.OwnFamilies, b.Meaningful, b.Excess = 0, 0, 0, false
	s.begin(b)
	for i := 0; i < len(s.text) && !b.Excess; {
		if i = s.repeat(i); i < len(s.text) {
			i = s.entry(i)
		}
		b.Excess = s.usedFamilies > maxFamilies || s.usedBlocks > maxBlocks || len(b.Samples) > maxSamples
	}
	s.usedOwn = b.OwnFamilies
	s.dropOldHelp()
	// The Body is the reader's again, and may change.
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
	if s.own == nil || overgrown(s.own.Families(), s.usedOwn) {
		s.own, s.ownSeen = NewDict(), nil
	}
	s.scan++
	s.usedBlocks, s.usedFamilies = 0, 0
	s.family, s.name, s.helps = none, "", 0
	s.previous, s.expected = none, s.first
	s.out = b
	// The Body is only read while Scan runs, and nobody writes to it then; as a
	// string it serves the map lookups and strconv without being copied.
	s.text = unsafe.String(unsafe.SliceData(b.Body), len(b.Body))
}

// overgrown reports whether a table with that many known entries is mostly
// litter, given how many of them the last scan used. A scan that used none was of
// an upstream in trouble and says nothing.
func overgrown(known, used int) bool { return used > 0 && known > 2*used+1024 }

// forget drops all that s remembers by id and turns to d.
func (s *Scanner) forget(d *Dict) {
	s.dict, s.generation = d, d.Generation()
	s.blocks, s.families, s.helped = nil, nil, nil
	s.usedBlocks, s.usedFamilies = d.Blocks(), d.Families()
	s.first = none
}

// repeat reads lines from i on for as long as each is of the family of the line
// before it, has the label block that followed last time, and a plain value. It
// returns where that ends.
func (s *Scanner) repeat(i int) int {
	t, name := s.text, s.name
	if name == "" {
		return i
	}
	samples := s.out.Samples
	for {
		block := i + len(name)
		if block >= len(t) || t[block] != '{' || t[i:block] != name {
			break
		}
		if s.expected >= uint32(len(s.blocks)) || !strings.HasPrefix(t[block:], s.dict.blocks[s.expected]) {
			break
		}
		value, stamp, next, ok := lineRest(t, block+len(s.dict.blocks[s.expected]))
		if !ok || stamp != noStamp {
			break
		}
		samples = append(samples, Sample{Family: s.family, Labels: s.expected, Value: value})
		s.follow(s.expected)
		i = next
	}
	s.out.Meaningful += len(samples) - len(s.out.Samples)
	s.out.Samples = samples
	return i
}

// entry reads one entry, of whatever kind, from the line start i and returns
// where the next line starts. An entry is one line but for newlines in quotes.
func (s *Scanner) entry(i int) int {
	j := skipBlanks(s.text, i)
	switch {
	case j == len(s.text) || s.text[j] == '\n':
		return min(j+1, len(s.text))
	case s.text[j] == '#':
		return s.header(i, j+1)
	case s.text[j] == '{':
		return s.quotedSeries(i, j)
	}
	return s.series(i, j)
}

// series reads a line whose metric name starts at j. Like textparse, it makes
// the blanks in front, from i on, a part of the name.
func (s *Scanner) series(i, j int) int {
	end := metricNameEnd(s.text, j)
	if end == j {
		return s.reject(i)
	}
	name := s.text[i:end]
	if name != s.name {
		s.previous, s.expected = none, s.first
	}
	id, block := uint32(none), ""
	if j = skipBlanks(s.text, end); j < len(s.text) && s.text[j] == '{' {
		var ok bool
		if id, block, ok = s.plainBlock(j); !ok {
			return s.reject(i)
		}
		end = j + len(block)
	}
	value, stamp, next, ok := lineRest(s.text, end)
	if !ok {
		return s.reject(i)
	}
	if strings.HasPrefix(name, ownPrefix) {
		return s.leaveOut(i, next, name)
	}
	if name != s.name {
		s.startFamily(name, false)
	}
	s.sample(id, block, block != "", value)
	s.stamp(stamp)
	return next
}

// plainBlock reads the label block at i, behind a metric name. id is none where
// the block is not known yet.
func (s *Scanner) plainBlock(i int) (id uint32, block string, ok bool) {
	t := s.text
	if s.expected < uint32(len(s.blocks)) {
		if block = s.dict.blocks[s.expected]; strings.HasPrefix(t[i:], block) {
			return s.expected, block, true
		}
	}
	// Most blocks end at the first brace of their line, and a lookup costs less
	// than a parse. The search stays in the line, else it would go over a hostile
	// body once for each of its lines.
	line := t[i:nextLine(t, i)]
	block = line[:strings.IndexByte(line, '}')+1]
	if id, ok = s.dict.blockID[block]; ok && int(id) < len(s.blocks) && s.blocks[id].plain {
		return id, block, true
	}
	_, quoted, end, ok := scanBlock(t, i)
	if !ok || quoted {
		return none, "", false
	}
	return none, t[i:end], true
}

// quotedSeries reads a line whose label block starts at j and holds the metric
// name, in quotes.
func (s *Scanner) quotedSeries(i, j int) int {
	name, quoted, end, ok := scanBlock(s.text, j)
	if !ok || !quoted {
		return s.reject(i)
	}
	value, stamp, next, ok := lineRest(s.text, end)
	if !ok {
		return s.reject(i)
	}
	if strings.HasPrefix(name, ownPrefix) {
		return s.leaveOut(i, next, name)
	}
	s.startFamily(name, true)
	s.sample(none, s.text[j:end], false, value)
	s.stamp(stamp)
	return next
}

// startFamily makes the family of that name, as written, the current one.
func (s *Scanner) startFamily(name string, quoted bool) {
	if quoted {
		s.scratch = appendUnescaped(s.scratch[:0], name)
		s.enter(s.dict.FamilyID(s.scratch))
		s.name = ""
		return
	}
	s.enter(s.dict.familyOf(name))
	// The Dict's copy, which outlives the Body.
	s.name = s.dict.families[s.family].Name
}

// enter makes a family the current one.
func (s *Scanner) enter(id uint32) {
	s.family, s.previous, s.expected = id, none, s.first
	for int(s.family) >= len(s.families) {
		s.families = append(s.families, familyNote{})
	}
	if s.families[s.family].scan != s.scan {
		s.families[s.family].scan = s.scan
		s.usedFamilies++
	}
}

// sample adds an accepted sample of the current family. plain says that block
// is one that a metric name in front of it may have; id is its id, if known.
func (s *Scanner) sample(id uint32, block string, plain bool, value float64) {
	if id == none {
		id = s.dict.blockOf(block)
		for int(id) >= len(s.blocks) {
			s.blocks = append(s.blocks, blockNote{next: none})
		}
		s.blocks[id].plain = plain
	}
	s.out.Samples = append(s.out.Samples, Sample{Family: s.family, Labels: id, Value: value})
	s.out.Meaningful++
	if plain {
		s.follow(id)
	} else {
		s.use(id)
	}
}

// stamp gives the last sample its timestamp, if it has one.
func (s *Scanner) stamp(ms int64) {
	if ms != noStamp {
		s.out.Stamps = append(s.out.Stamps, Stamp{Sample: len(s.out.Samples) - 1, Millis: ms})
	}
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

// leaveOut keeps the accepted entry [i, next) of a family of our own from being
// passed on or sampled.
func (s *Scanner) leaveOut(i, next int, name string) int {
	s.omit(i, next)
	s.out.Meaningful++
	s.scratch = appendUnescaped(s.scratch[:0], name)
	id := s.own.FamilyID(s.scratch)
	for int(id) >= len(s.ownSeen) {
		s.ownSeen = append(s.ownSeen, 0)
	}
	if s.ownSeen[id] != s.scan {
		s.ownSeen[id] = s.scan
		s.out.OwnFamilies++
	}
	return next
}

// reject leaves out the line that starts at i, and counts it.
func (s *Scanner) reject(i int) int {
	next := nextLine(s.text, i)
	s.omit(i, next)
	s.out.Skipped++
	return next
}

// omit adds [i, next) to the spans that are not passed on.
func (s *Scanner) omit(i, next int) {
	if n := len(s.out.Omit); n > 0 && s.out.Omit[n-1].End == i {
		s.out.Omit[n-1].End = next
		return
	}
	s.out.Omit = append(s.out.Omit, Span{i, next})
}

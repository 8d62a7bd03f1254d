package raw

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// header handles a HELP or TYPE entry.
func (s *Scanner) header(e *exposition.Entry) {
	if strings.HasPrefix(e.Name, ownPrefix) {
		s.leaveOut(e)
		return
	}
	s.out.Meaningful++
	line := s.text[e.Start:e.End]
	if e.Kind == exposition.Type {
		if e.Name == s.name && s.name != "" { // a quoted name may be empty
			remember(&s.families[s.family].typeLine, line)
		}
		return
	}
	if e.Quoted || e.Name != s.name {
		s.startFamily(e)
	}
	note := &s.families[s.family]
	if note.help == s.scan {
		return // the first HELP of a scan counts, as the first sample does
	}
	note.help = s.scan
	if f := s.dict.Family(s.family); f.Help != e.Text {
		f.Help = strings.Clone(e.Text)
	}
	if !e.Quoted {
		remember(&note.helpLine, line)
		s.noteHelp()
	}
}

// knownHeader reads the header line at i if it is, to the byte, the HELP line
// at this position of the last scan, or the TYPE line that the current
// family had then. It returns the start of the next line, or i.
func (s *Scanner) knownHeader(i int) int {
	if s.name != "" {
		if line := s.families[s.family].typeLine; line != "" && strings.HasPrefix(s.text[i:], line) {
			s.out.Meaningful++
			return i + len(line)
		}
	}
	if s.helps == len(s.helped) {
		return i
	}
	id := s.helped[s.helps]
	line := s.families[id].helpLine
	if line == "" || !strings.HasPrefix(s.text[i:], line) {
		return i
	}
	if id != s.family || s.name == "" {
		s.enter(id)
		s.name = s.dict.families[id].Name
	}
	s.out.Meaningful++
	s.families[id].help = s.scan
	s.noteHelp()
	return i + len(line)
}

// noteHelp notes that the current family has a HELP line here.
func (s *Scanner) noteHelp() {
	if s.helps == len(s.helped) {
		s.helped = append(s.helped, 0)
	}
	s.helped[s.helps] = s.family
	s.helps++
}

// remember keeps a whole line in dst.
func remember(dst *string, line string) {
	if *dst != line && line[len(line)-1] == '\n' {
		*dst = strings.Clone(line)
	}
}

// dropOldHelp forgets the HELP of families that had one in an earlier scan only:
// a text must be that of the scan that it is read with.
func (s *Scanner) dropOldHelp() {
	for id := range s.families {
		if f := &s.families[id]; f.help != s.scan {
			f.helpLine, s.dict.families[id].Help = "", ""
		}
	}
}

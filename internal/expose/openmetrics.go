package expose

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// openMetrics returns the content type of the OpenMetrics that a request asks for, "" if the answer is the text format:
// lines of an exporter are passed through as they are, and its counters lack the suffix _total that OpenMetrics requires.
// */* asks for text.
func (p Passthrough) openMetrics(r *http.Request) string {
	if p != PassOff {
		return ""
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1)
	if format.FormatType() != expfmt.TypeOpenMetrics {
		return ""
	}
	return string(format)
}

// writeOpenMetrics writes the page as OpenMetrics. A client that also takes protobuf, as a Prometheus that reads
// created timestamps does, gets them; they would be series of their own to any other.
func (m *metrics) writeOpenMetrics(o *output, r *http.Request, asked chosen, readings []outcome) {
	var page bytes.Buffer
	text := m.outputs.get(&page, false)
	m.write(text, asked, readings)
	text.end()
	text.last.flush()
	m.outputs.put(text)
	var began map[string]bool
	if strings.Contains(strings.Join(r.Header["Accept"], ","), expfmt.ProtoType) {
		began = m.fromZero
	}
	o.pass(appendOpenMetrics(nil, page.Bytes(), began, m.since))
}

// countersFromZero returns the counters that are 0 when the program starts: all of ours but the board's own, and those of
// NVSwitches, which begin with the kernel's log.
func countersFromZero() map[string]bool {
	names := map[string]bool{}
	for _, s := range SeriesTable() {
		names[s.Name] = s.Type == canonical.Counter
	}
	for i := range canonical.Fields {
		delete(names, canonical.Prefix+canonical.Fields[i].Name)
	}
	delete(names, canonical.Prefix+switchSeries.Name)
	return names
}

// appendOpenMetrics appends a page of the text format, in which HELP is followed by TYPE, as OpenMetrics: counters are
// named without _total in HELP and TYPE, and others' counters without that suffix have no type. Those in began get the
// time at which they were 0.
func appendOpenMetrics(dst, page []byte, began map[string]bool, since time.Time) []byte {
	var help []byte
	created := "" // what the series of the present family are called that have the time; "" for none
	for line := range bytes.Lines(page) {
		if bytes.HasPrefix(line, []byte("# HELP ")) {
			help = line
			continue
		}
		header, is := bytes.CutPrefix(line, []byte("# TYPE "))
		if !is {
			dst = append(dst, line...)
			if labels := bytes.IndexByte(line, '{'); created != "" && labels > 0 {
				dst = append(append(dst, created...), line[labels:bytes.LastIndexByte(line, ' ')+1]...)
				dst = append(strconv.AppendFloat(dst, float64(since.UnixMilli())/1000, 'f', 3, 64), '\n')
			}
			continue
		}
		name, kind, _ := strings.Cut(strings.TrimSpace(string(header)), " ")
		family, total := strings.CutSuffix(name, "_total")
		if kind != string(canonical.Counter) || !total {
			family = name
		}
		if kind == "untyped" || kind == string(canonical.Counter) && !total {
			kind = "unknown"
		}
		if text, is := bytes.CutPrefix(help, []byte("# HELP "+name+" ")); is {
			dst = append(dst, "# HELP "+family+" "+strings.ReplaceAll(string(text), `"`, `\"`)...)
		}
		dst = append(dst, "# TYPE "+family+" "+kind+"\n"...)
		if help, created = nil, ""; began[name] {
			created = family + "_created"
		}
	}
	return append(dst, "# EOF\n"...)
}

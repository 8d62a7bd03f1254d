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

// openMetrics returns the content type of the OpenMetrics that a request asks for, "" for the text format, which */* means
// too. Lines of an exporter are passed through as they are, and its counters lack the suffix that OpenMetrics requires.
func (p Passthrough) openMetrics(r *http.Request) string {
	if p != PassOff {
		return ""
	}
	one, _ := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_1_0_0) // known versions
	older, _ := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_0_0_1)
	format := expfmt.NegotiateAccept(r.Header, expfmt.NewFormat(expfmt.TypeTextPlain), one, older)
	if format.FormatType() != expfmt.TypeOpenMetrics {
		return ""
	}
	return string(format)
}

// writeOpenMetrics writes the page as OpenMetrics. A client that also takes protobuf, as a Prometheus that reads
// created timestamps does, gets them; they would be series of their own to any other.
func (m *metrics) writeOpenMetrics(o, text *output, r *http.Request) {
	page := text.w.(*bytes.Buffer)
	text.flush()
	var fromZero map[string]bool
	if strings.Contains(strings.Join(r.Header["Accept"], ","), expfmt.ProtoType) {
		fromZero = countersFromZero()
	}
	o.pass(appendOpenMetrics(nil, page.Bytes(), fromZero, m.since))
}

// countersFromZero returns the counters that are 0 when the program starts: all of ours but the board's own, and those of
// NVSwitches, which begin with the kernel's log.
func countersFromZero() map[string]bool {
	names := map[string]bool{}
	for _, s := range SeriesTable() {
		names[s.Name] = s.Type == canonical.Counter && s.Name != canonical.Prefix+switchSeries.Name
	}
	for i := range canonical.Fields {
		delete(names, canonical.Prefix+canonical.Fields[i].Name)
	}
	return names
}

// appendOpenMetrics appends a page of the text format, in which TYPE follows HELP, as OpenMetrics: HELP and TYPE name
// counters without _total, and those that lack it have no type. The counters fromZero get the time since when they count.
func appendOpenMetrics(dst, page []byte, fromZero map[string]bool, since time.Time) []byte {
	var help []byte
	created := "" // the name of this family's times; "" for none
	for line := range bytes.Lines(page) {
		switch labels := bytes.IndexByte(line, '{'); {
		case bytes.HasPrefix(line, []byte("# HELP ")):
			help = line
		case bytes.HasPrefix(line, []byte("# TYPE ")):
			name, kind, _ := strings.Cut(strings.TrimSpace(string(line[len("# TYPE "):])), " ")
			family, total := strings.CutSuffix(name, "_total")
			if counter := kind == string(canonical.Counter); !counter || !total {
				if family = name; counter || kind == "untyped" {
					kind = "unknown"
				}
			}
			if text, is := bytes.CutPrefix(help, []byte("# HELP "+name+" ")); is {
				dst = append(dst, "# HELP "+family+" "+strings.ReplaceAll(string(text), `"`, `\"`)...)
			}
			dst = append(dst, "# TYPE "+family+" "+kind+"\n"...)
			if created = ""; fromZero[name] {
				created = family + "_created"
			}
		default:
			dst = append(dst, line...)
			if created != "" && labels > 0 {
				dst = append(append(dst, created...), line[labels:bytes.LastIndexByte(line, ' ')+1]...)
				dst = append(strconv.AppendFloat(dst, float64(since.UnixMilli())/1000, 'f', 3, 64), '\n')
			}
		}
	}
	return append(dst, "# EOF\n"...)
}

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

// asksOpenMetrics returns the content type of the OpenMetrics that a request asks for, "" for the text format, which */* means
// too. Lines of an exporter are passed through as they are, and its counters lack the suffix that OpenMetrics requires.
func (p Passthrough) asksOpenMetrics(r *http.Request) string {
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

// openMetrics writes a page of the text format, in which TYPE follows HELP, to out as OpenMetrics: HELP and TYPE name
// counters without _total, and those that lack it have no type. The counters fromZero get the time since when they count.
type openMetrics struct {
	out           *buffer
	fromZero      map[string]bool
	since         time.Time
	rest          []byte // the beginning of a line
	help, created []byte // the family's HELP, and the name of its times; empty for none
}

// newOpenMetrics begins a page. A client that also takes protobuf, as a Prometheus that reads created timestamps does, gets
// them; they would be series of their own to any other.
func (m *metrics) newOpenMetrics(out *buffer, r *http.Request) *openMetrics {
	w := &openMetrics{out: out, since: m.since}
	if strings.Contains(strings.Join(r.Header["Accept"], ","), expfmt.ProtoType) {
		w.fromZero = countersFromZero()
	}
	return w
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

// Write implements io.Writer.
func (w *openMetrics) Write(part []byte) (int, error) {
	for line := range bytes.Lines(part) {
		if w.rest = append(w.rest, line...); line[len(line)-1] == '\n' {
			w.line(w.rest)
			w.rest = w.rest[:0]
			w.out.flushIfFull()
		}
	}
	return len(part), w.out.err
}

func (w *openMetrics) line(line []byte) {
	dst := w.out.buf
	switch labels := bytes.IndexByte(line, '{'); {
	case bytes.HasPrefix(line, []byte("# HELP ")):
		w.help = append(w.help[:0], line...)
	case bytes.HasPrefix(line, []byte("# TYPE ")):
		name, kind, _ := strings.Cut(strings.TrimSpace(string(line[len("# TYPE "):])), " ")
		family, total := strings.CutSuffix(name, "_total")
		if counter := kind == string(canonical.Counter); !counter || !total {
			if family = name; counter || kind == "untyped" {
				kind = "unknown"
			}
		}
		if text, is := bytes.CutPrefix(w.help, []byte("# HELP "+name+" ")); is {
			dst = append(dst, "# HELP "+family+" "+strings.ReplaceAll(string(text), `"`, `\"`)...)
		}
		dst = append(dst, "# TYPE "+family+" "+kind+"\n"...)
		if w.created = w.created[:0]; w.fromZero[name] {
			w.created = append(w.created, family+"_created"...)
		}
	default:
		dst = append(dst, line...)
		if len(w.created) > 0 && labels > 0 {
			dst = append(append(dst, w.created...), line[labels:bytes.LastIndexByte(line, ' ')+1]...)
			dst = append(strconv.AppendFloat(dst, float64(w.since.UnixMilli())/1000, 'f', 3, 64), '\n')
		}
	}
	w.out.buf = dst
}

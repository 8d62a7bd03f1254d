package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// refusedLines are lines that Prometheus' parser accepts, and whether a server refuses a scrape for
// them.
var refusedLines = []struct {
	line    string
	refused bool
}{
	{`foo{a="1",a="2"} 1`, true},
	{`foo{a="1",b="2",a="1"} 1`, true},
	{`foo{__name__="bar"} 1`, true},
	{`foo{__name__=""} 1`, true},
	{` foo 1`, true},
	{"\tfoo{a=\"3\"} 1", true},
	{`{"foo",a="7"} 1`, true}, // quoted names are of format 1.0.0, which we do not serve
	{`{"foo.bar"} 1`, true},
	{`foo{"a"="8"} 1`, true},
	{`foo{"a.b"="8"} 1`, true},
	{"# HELP \"foo\" text", true},
	{"# TYPE \"foo.bar\" gauge", true},
	{`foo{a="",a="4"} 1`, false}, // a is dropped, like all empty labels
	{`foo{a="5",A="5"} 1`, false},
	{`foo {a="6"} 1`, false},
}

// TestServerRefuses sends each line to a real server, which must agree with refusedLines, and all
// lines through the proxy: what the server accepts arrives, and it accepts what arrives.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	jobs, all, kept := map[string]string{}, oneGPU, 0
	for i, l := range refusedLines {
		body := []byte(l.line + "\n")
		up := startUpstream(func() ([]byte, error) { return body, nil })
		defer up.stop()
		jobs[fmt.Sprint("line", i)] = strings.TrimPrefix(up.url, "http://")
		all += l.line + "\n"
		if !l.refused {
			kept++
		}
	}
	up := startUpstream(func() ([]byte, error) { return []byte(all), nil })
	defer up.stop()
	proxy := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=1m") // one reading
	jobs["proxy"] = strings.TrimPrefix(proxy.URL, "http://")
	server := startPrometheus(t, binary, jobs, nil)
	server.await(t, fmt.Sprintf(`count(up) == %d and on() up{job="proxy"} == 1`, len(jobs)))
	for i, l := range refusedLines {
		want := map[bool]string{true: "0", false: "1"}[l.refused]
		for _, got := range server.query(t, fmt.Sprintf(`up{job="line%d"}`, i)) {
			if got != want {
				t.Errorf("the server's up is %s for %q, want %s", got, l.line, want)
			}
		}
	}
	if got := len(server.query(t, `foo{job="proxy"}`)); got != kept {
		t.Errorf("%d series of the upstream came through the proxy, want %d", got, kept)
	}
	skipped := fmt.Sprintf(" %d\n", len(refusedLines)-kept)
	if _, text := page(t, proxy, "/metrics"); !strings.Contains(family(text, "kpulse_source_skipped_lines_total"), skipped) {
		t.Errorf("want%s lines counted in\n%s", skipped, family(text, "kpulse_source_skipped_lines_total"))
	}
}

// family returns the lines of an exposition that begin with a name.
func family(text, name string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

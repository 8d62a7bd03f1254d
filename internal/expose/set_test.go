package expose

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSourcesComeAndGo: the next request sees the current sources.
func TestSourcesComeAndGo(t *testing.T) {
	failure := &canonical.Failure{Kind: "none", Cause: "no exporter is known", Remedy: "start one"}
	absent := func() *canonical.Failure { return failure }
	set := NewSet()
	server := serve(t, Options{Sources: set, Absent: absent, FailureKinds: []string{"timeout"}})
	expect := func(path string, status int, parts ...string) {
		t.Helper()
		res, body := ask(t, "GET", server.URL+path)
		if res.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, status)
		}
		for _, part := range parts {
			text, without := strings.CutPrefix(part, "!")
			if strings.Contains(string(body), text) == without {
				t.Errorf("%s: %q is there: %v, in\n%s", path, text, !without, body)
			}
		}
	}
	const why = "no source: no exporter is known; start one\n"
	for _, path := range []string{"/metrics", "/container/metrics", "/sd"} {
		expect(path, 502, why)
	}
	expect("/-/ready", 503, why)
	expect("/metrics?source=a", 404, "there is none now")
	failure = nil // it is certain that there is none
	expect("/metrics", 200, "kpulse_build_info", "!kpulse_source")
	expect("/container/metrics", 200, "[]\n")
	expect("/sd", 200, "[]\n")
	expect("/-/ready", 200, "there is no source now")

	a, b := sourceOf(snapshotOf("a", board())), sourceOf(snapshotOf("b", unread()))
	set.Replace([]Source{a})()
	expect("/metrics", 200, `kpulse_source_up{source="a"`, "!"+`source="b"`)
	expect("/sd", 200, `"instance":"a"`)
	expect("/-/ready", 200)
	expect("/-/metrics", 200, `kpulse_proxy_scrape_failures_total{kind="timeout",source="a"} 0`)
	set.Replace([]Source{a, b})()
	expect("/metrics", 200, `kpulse_source_up{source="a"`, `kpulse_source_up{source="b"`)
	expect("/metrics?source=b", 200, "!"+`source="a"`, `kpulse_source_up{source="b"`)
	set.Replace([]Source{b})()
	expect("/metrics", 200, "!"+`source="a"`, `kpulse_source_up{source="b"`)
	expect("/metrics?source=a", 404, "name one of: b")
	expect("/-/metrics", 200, `source="b"`, "!"+`source="a"`)
}

// TestASourceThatLeftIsReadToTheEnd: a scrape continues with the sources that it began with,
// and a replacement waits for it, also after several replacements.
func TestASourceThatLeftIsReadToTheEnd(t *testing.T) {
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	slow := sourceOf(snapshotOf("slow", board()))
	slow.entered, slow.hold = asked, goOn
	set := NewSet(slow)
	server := serve(t, Options{Sources: set, Absent: func() *canonical.Failure { return nil }})
	var body []byte
	var scrape sync.WaitGroup
	scrape.Go(func() { _, body = ask(t, "GET", server.URL+"/metrics") })
	<-asked
	set.Replace(nil)
	drained := make(chan struct{})
	wait := set.Replace([]Source{sourceOf(snapshotOf("new", board()))})
	go func() { wait(); close(drained) }()
	select {
	case <-drained:
		t.Error("the source is said to be free while a scrape reads it")
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	scrape.Wait()
	<-drained
	if !strings.Contains(string(body), `kpulse_source_up{source="slow",backend="prometheus"} 1`) {
		t.Errorf("the scrape got\n%s", body)
	}
}

// TestReplacedSourcesAreForgotten: replaced sources are freed even if no caller calls drained.
func TestReplacedSourcesAreForgotten(t *testing.T) {
	set := NewSet()
	first := weak.Make(set.members)
	for range 3 {
		set.Replace(nil)
	}
	for end := time.Now().Add(30 * time.Second); first.Value() != nil; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the first members are still there")
		}
	}
	runtime.KeepAlive(set)
}

package holders

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestDenials: denied resources are not requested again at once, each is logged once, and the
// note says what to grant until it is granted.
func TestDenials(t *testing.T) {
	f := newFakeAPI()
	var log bytes.Buffer
	for i := range 3 {
		f.chain(fmt.Sprintf("p-%d", i), link{job, fmt.Sprintf("j-%d", i)})
		f.on(fmt.Sprintf("%sj-%d", job.path, i), forbid)
	}
	f.on("/api/v1/namespaces/o/pods/p", forbid)
	f.on("/api/v1/namespaces/x/pods/p", forbid)
	c := f.cluster(t)
	c.logger = slog.New(slog.NewTextHandler(&log, nil))
	pauseLong := func() { // however slow this machine is
		for _, open := range c.open {
			open.until = time.Now().Add(time.Hour)
		}
	}
	for i := range 3 {
		if owner, sure, err := c.ownerOf(t.Context(), Pod{"n", fmt.Sprintf("p-%d", i)}); err != nil || sure || owner.Kind != "Job" {
			t.Errorf("%v, %v, %v", owner, sure, err)
		}
		pauseLong()
	}
	for _, namespace := range []string{"o", "x", "o"} {
		if _, _, err := c.ownerOf(t.Context(), Pod{namespace, "p"}); !errors.Is(err, errDenied) {
			t.Error(err)
		}
		pauseLong()
	}
	if n := f.count(""); n != 6 {
		t.Errorf("%d requests: %v", n, f.asked)
	}
	notes := c.Notes()
	if len(notes) != 2 || !strings.HasSuffix(notes[1].Remedy, `{apiGroups: ["batch"], resources: [jobs], verbs: [get]}`) ||
		!strings.Contains(notes[0].Cause, "the right to get pods in namespace o") {
		t.Errorf("notes %q", notes)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 {
		t.Errorf("log:\n%s", log.String())
	}
	for _, namespace := range []string{"o", "o", "x"} {
		c.succeed("the right to get pods in namespace " + namespace)
	}
	if len(c.Notes()) != 1 || strings.Count(log.String(), "level=INFO") != 1 {
		t.Errorf("notes %q, log:\n%s", c.Notes(), log.String())
	}
}

// TestKindThatFails: if the API server answers for pods and fails for a kind of owner, that is
// not an outage; only the kind is requested less often, and it is logged once.
func TestKindThatFails(t *testing.T) {
	const kind = "Rollout.argoproj.io"
	for name, path := range map[string]string{"conversion webhook": rollout.path + "blue", "APIService": "/apis/argoproj.io/v1alpha1"} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI()
			operators(f)
			for i := range 5 {
				f.chain(fmt.Sprintf("p-%d", i), link{replicaSet, fmt.Sprintf("rs-%d", i)}, link{rollout, "blue"})
			}
			f.chain("q", link{statefulSet, "db"})
			f.on(path, func(w http.ResponseWriter, _ *http.Request) {
				refuse(w, http.StatusServiceUnavailable, "InternalError")
			})
			var log bytes.Buffer
			c := f.cluster(t)
			c.logger = slog.New(slog.NewTextHandler(&log, nil))
			r := newResolver(c.ownerOf, c.breaker)
			for i := range 5 {
				pod := Pod{"n", fmt.Sprintf("p-%d", i)}
				r.find(pod)
				r.resolve(t.Context(), <-r.queue)
				if owner, ok := r.find(pod); !ok || owner != (Owner{"Rollout", "blue"}) {
					t.Errorf("%s: %v, %v", pod.Name, owner, ok)
				}
				c.open[kind].until = time.Now().Add(time.Hour) // however slow this machine is
			}
			if r.fails(wholeServer) || len(r.Notes()) != 1 || !strings.Contains(r.Notes()[0].Cause, "Rollout.argoproj.io") {
				t.Errorf("notes %q", r.Notes())
			}
			if owner, sure, err := c.ownerOf(t.Context(), Pod{"n", "q"}); err != nil || !sure || owner.Name != "db" {
				t.Errorf("another kind: %v, %v, %v", owner, sure, err)
			}
			if n := f.count(path); n != 1 || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("asked for the kind %d times, log:\n%s", n, log.String())
			}
			f.on(path, nil)
			c.open[kind].until = time.Time{}
			c.kept.RemoveAll(func(any) bool { return true })
			if owner, sure, err := c.ownerOf(t.Context(), Pod{"n", "p-0"}); err != nil || !sure || owner != (Owner{"Rollout", "blue"}) {
				t.Errorf("mended: %v, %v, %v", owner, sure, err)
			}
			if len(r.Notes()) != 0 || strings.Count(log.String(), "level=INFO") != 1 {
				t.Errorf("notes %q, log:\n%s", r.Notes(), log.String())
			}
		})
	}
}

// TestPauses grow with each failure, once for all callers that fail at the same time. What nobody asks
// about is forgotten.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, before := newBreaker(discard), time.Duration(0)
		for i := range 10 {
			if !b.allows("x") {
				t.Fatal("not allowed after the pause")
			}
			for j := range 3 {
				if news := b.fail("x", canonical.Note{Cause: "c"}); news != (i+j == 0) || b.allows("x") {
					t.Errorf("news: %v; or asked again at once", news)
				}
			}
			c := b.open["x"]
			if c.pause > longestPause || i > 0 && c.pause != min(2*before, longestPause) {
				t.Errorf("pause %s after %s", c.pause, before)
			}
			before = c.pause
			time.Sleep(time.Until(c.until))
		}
		if time.Sleep(outOfUse / 2); len(b.Notes()) != 1 {
			t.Errorf("notes %q", b.Notes())
		}
		if time.Sleep(outOfUse); len(b.Notes()) != 0 {
			t.Errorf("notes %q", b.Notes())
		}
	})
}

package holders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	for i := range 3 {
		if owner, sure, err := c.ownerOf(t.Context(), Pod{"n", fmt.Sprintf("p-%d", i)}); err != nil || sure || owner.Kind != "Job" {
			t.Errorf("%v, %v, %v", owner, sure, err)
		}
	}
	for _, namespace := range []string{"o", "x", "o"} {
		if _, _, err := c.ownerOf(t.Context(), Pod{namespace, "p"}); !errors.Is(err, errDenied) {
			t.Error(err)
		}
	}
	if n := f.count(""); n != 6 {
		t.Errorf("%d requests: %v", n, f.asked)
	}
	notes := c.notes()
	if len(notes) != 2 || !strings.HasSuffix(notes[0].Remedy, `{apiGroups: ["batch"], resources: [jobs], verbs: [get]}`) ||
		!strings.Contains(notes[1].Cause, "pods in namespace o and 1 others: the workloads of pods") {
		t.Errorf("notes %q", notes)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 {
		t.Errorf("log:\n%s", log.String())
	}
	for _, namespace := range []string{"o", "o", "x"} {
		c.succeed(subject{podsResource.GroupResource(), namespace})
	}
	if len(c.notes()) != 1 || strings.Count(log.String(), "level=INFO") != 1 {
		t.Errorf("notes %q, log:\n%s", c.notes(), log.String())
	}
}

// TestKindThatFails: if the API server answers for pods and fails for a kind of owner, that is
// not an outage; only the kind is requested less often, it is logged once, and no owner below it
// is published.
func TestKindThatFails(t *testing.T) {
	kind := subject{of: schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}}
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
				if owner, ok := r.find(pod); !ok || owner != (Owner{}) {
					t.Errorf("%s: %v, %v", pod.Name, owner, ok)
				}
				c.open[kind].until = time.Now().Add(time.Hour) // however slow this machine is
			}
			if r.isOpen(wholeServer) || len(r.Notes()) != 1 || !strings.Contains(r.Notes()[0].Cause, "Rollout.argoproj.io") {
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
			if owner, sure, err := c.ownerOf(t.Context(), Pod{"n", "p-0"}); err != nil || !sure || owner != (Owner{"Rollout", "blue"}) {
				t.Errorf("mended: %v, %v, %v", owner, sure, err)
			}
			if len(r.Notes()) != 0 || strings.Count(log.String(), "level=INFO") != 1 {
				t.Errorf("notes %q, log:\n%s", r.Notes(), log.String())
			}
		})
	}
}

// TestBreakerLetsOneTry after each pause, however many callers come, and pauses grow with each
// failure. What nobody asks about is forgotten.
func TestBreakerLetsOneTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, kind := newBreaker(discard), subject{of: schema.GroupKind{Kind: "RayCluster"}}
		before := time.Duration(0)
		for i := range 10 {
			if !b.enter(kind) || before > 0 && b.enter(kind) {
				t.Fatal("none asks, or several do")
			}
			if news := b.fail(kind, context.DeadlineExceeded); news != (i == 0) || b.enter(kind) {
				t.Errorf("news: %v; or asked again at once", news)
			}
			one := b.open[kind]
			if one.pause < before || one.pause > longestPause {
				t.Errorf("pause %s after %s", one.pause, before)
			}
			before = one.pause
			time.Sleep(time.Until(one.until))
		}
		b.fail(wholeServer, context.DeadlineExceeded)
		for range 7 {
			time.Sleep(outOfUse / 6)
			b.enter(kind)
		}
		if notes := b.notes(); len(notes) != 1 || !strings.Contains(notes[0].Cause, "RayCluster") {
			t.Errorf("notes %q", notes)
		}
	})
}

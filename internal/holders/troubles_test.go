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

// TestKindThatFails: if the API server answers for pods and fails for a kind of owner, that is
// not an outage; only the kind is requested less often, it is logged once, and no owner below it
// is published.
func TestKindThatFails(t *testing.T) {
	kind := schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}
	for _, test := range []struct {
		name, path string
		code       int
	}{
		{"conversion webhook", rollout.path + "blue", http.StatusInternalServerError},
		{"APIService", "/apis/argoproj.io/v1alpha1", http.StatusServiceUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeAPI()
			operators(f)
			for i := range 5 {
				f.chain(fmt.Sprintf("p-%d", i), link{replicaSet, fmt.Sprintf("rs-%d", i)}, link{rollout, "blue"})
			}
			f.chain("q", link{statefulSet, "db"})
			f.on(test.path, func(w http.ResponseWriter, _ *http.Request) { refuse(w, test.code, "InternalError") })
			var log bytes.Buffer
			c := f.cluster(t)
			c.troubles.logger = slog.New(slog.NewTextHandler(&log, nil))
			r := newResolver(c.ownerOf, c.obstacles, c.troubles.logger)
			for i := range 5 {
				pod := Pod{"n", fmt.Sprintf("p-%d", i)}
				r.find(pod, nil, time.Now())
				r.resolve(context.Background(), pod)
				if owner, is := r.find(pod, nil, time.Now()); is != unknown {
					t.Errorf("%s: %v, %v", pod.Name, owner, is)
				}
				c.troubles.byKind[kind].until = time.Now().Add(time.Hour) // however slow this machine is
			}
			if r.outage.is() || len(r.Notes()) != 1 || !strings.Contains(r.Notes()[0].Cause, "Rollout.argoproj.io") {
				t.Errorf("notes %q", r.Notes())
			}
			if owner, sure, err := c.ownerOf(context.Background(), Pod{"n", "q"}); err != nil || !sure || owner.Name != "db" {
				t.Errorf("another kind: %v, %v, %v", owner, sure, err)
			}
			if n := f.count(test.path); n != 1 {
				t.Errorf("asked for the kind %d times", n)
			}
			if got := strings.Count(log.String(), "\n"); got != 1 {
				t.Errorf("log:\n%s", log.String())
			}
			f.repair(test.path)
			c.troubles.byKind[kind].until = time.Time{}
			if owner, sure, err := c.ownerOf(context.Background(), Pod{"n", "p-0"}); err != nil || !sure || owner != (Owner{"Rollout", "blue"}) {
				t.Errorf("mended: %v, %v, %v", owner, sure, err)
			}
			if len(r.Notes()) != 0 || strings.Count(log.String(), "level=INFO") != 1 {
				t.Errorf("notes %q, log:\n%s", r.Notes(), log.String())
			}
		})
	}
}

// TestKindThatFailsIsAskedOnce after each pause, however many callers come, and pauses grow
// with each failure.
func TestKindThatFailsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, kind := newTroubles(discard), schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}
		hung := fmt.Errorf("get rayclusters: %w", context.DeadlineExceeded)
		now, before := time.Now(), time.Duration(0)
		for range 10 {
			if !all.enter(kind, now) || before > 0 && all.enter(kind, now) {
				t.Fatal("none asks, or several do")
			}
			if err := all.take(context.Background(), kind, hung); !errors.Is(err, errTroubled) {
				t.Fatal(err)
			}
			one := all.byKind[kind]
			if one.pause < before || one.pause > longestPause || all.enter(kind, time.Now()) {
				t.Errorf("pause %s after %s", one.pause, before)
			}
			before, now = one.pause, one.until
		}
		ended, end := context.WithCancel(context.Background())
		end()
		for _, err := range []error{errors.New("connection refused"), hung} {
			if got := newTroubles(discard).take(ended, kind, err); !errors.Is(got, err) {
				t.Errorf("%v: %v", err, got)
			}
		}
	})
}

// TestKindThatNobodyAsksAbout is forgotten; one that is asked about stays in trouble.
func TestKindThatNobodyAsksAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, failed := newTroubles(discard), fmt.Errorf("get: %w", context.DeadlineExceeded)
		gone, here := schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}, schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}
		for _, kind := range []schema.GroupKind{gone, here} {
			if err := all.take(t.Context(), kind, failed); !errors.Is(err, errTroubled) {
				t.Fatal(err)
			}
		}
		for range 7 {
			if n := len(all.notes()); n != 2 {
				t.Fatalf("%d notes before the time is over", n)
			}
			time.Sleep(outOfUse / 7)
			all.enter(here, time.Now())
		}
		time.Sleep(time.Second)
		if notes := all.notes(); len(notes) != 1 || !strings.Contains(notes[0].Cause, here.Kind) {
			t.Errorf("notes %q", notes)
		}
	})
}

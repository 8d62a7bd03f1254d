package holders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// firstPause and longestPause bound the pause without requests for what fails: it doubles
	// from one failure to the next.
	firstPause   = time.Second
	longestPause = time.Minute
	// denialLife is how long a denied request is not repeated.
	denialLife = 15 * time.Second
	// outOfUse is the time without a request after which a failure is forgotten.
	outOfUse = 5 * time.Minute
	// maxSubjects is how many failing subjects are remembered. Others are requested each time.
	maxSubjects = 1024
)

// subject is what requests fail for: a right that the API server denies (schema.GroupResource: to get
// its objects, in a namespace), a kind of object for which it fails, as with a broken conversion
// webhook (schema.GroupKind), or the whole API server (nil).
type subject struct {
	of        fmt.Stringer
	namespace string
}

var wholeServer = subject{}

func (s subject) isRight() bool { _, is := s.of.(schema.GroupResource); return is }

// breaker keeps requests away from what fails. After a pause, one caller may try again, or all
// that a right was denied. The first failure is logged, and so is the end; what is no longer
// requested is forgotten. It is safe for concurrent use.
type breaker struct {
	logger *slog.Logger

	mu   sync.Mutex
	open map[subject]*circuit
}

// circuit is a subject that fails.
type circuit struct {
	cause        string
	pause        time.Duration
	until, asked time.Time // when to try again; when a caller last wanted to
}

func newBreaker(logger *slog.Logger) *breaker {
	return &breaker{logger: logger, open: map[subject]*circuit{}}
}

// enter reports whether to send a request now.
func (b *breaker) enter(s subject) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, now := b.open[s], time.Now()
	if c == nil {
		return true
	}
	c.asked = now
	if now.Before(c.until) {
		return false
	}
	if !s.isRight() {
		c.until = now.Add(2 * RequestTimeout) // until that caller has an answer
	}
	return true
}

// fail notes that a request failed, and reports whether that is news.
func (b *breaker) fail(s subject, err error) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.forget(now)
	c := b.open[s]
	if news = c == nil; news {
		if len(b.open) >= maxSubjects {
			return true
		}
		c = &circuit{asked: now}
		if n := s.note(err.Error(), 0); !b.has(s) {
			b.logger.Warn("the holders of GPUs are not fully known", "cause", n.Cause, "remedy", n.Remedy)
		}
		b.open[s] = c
	}
	c.cause = err.Error()
	c.pause = min(max(2*c.pause, firstPause), longestPause)
	c.until = now.Add(c.pause/2 + rand.N(c.pause)) //nolint:gosec // spreads load
	if s.isRight() {
		c.until = now.Add(denialLife)
	}
	return news
}

// succeed notes that a request did not fail, and reports whether that is news.
func (b *breaker) succeed(s subject) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[s] == nil {
		return false
	}
	delete(b.open, s)
	if !b.has(s) {
		b.logger.Info("the Kubernetes API server answers again", "for", s.of)
	}
	return true
}

// isOpen reports whether a subject fails.
func (b *breaker) isOpen(s subject) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[s] != nil
}

// has reports whether a subject fails in any namespace. The caller holds mu.
func (b *breaker) has(s subject) bool {
	for other := range b.open {
		if other.of == s.of {
			return true
		}
	}
	return false
}

// forget forgets what is no longer requested, as after its pods are gone. The caller holds mu.
func (b *breaker) forget(now time.Time) {
	maps.DeleteFunc(b.open, func(_ subject, c *circuit) bool { return now.Sub(c.asked) > outOfUse })
}

// notes returns a note for each subject that fails, one for all namespaces.
func (b *breaker) notes() (notes []canonical.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	all := slices.SortedFunc(maps.Keys(b.open), func(x, y subject) int {
		return cmp.Or(cmp.Compare(fmt.Sprint(x.of), fmt.Sprint(y.of)), cmp.Compare(x.namespace, y.namespace))
	})
	others := map[fmt.Stringer]int{}
	for _, s := range all {
		others[s.of]++
	}
	all = slices.CompactFunc(all, func(x, y subject) bool { return x.of == y.of })
	for _, s := range all {
		notes = append(notes, s.note(b.open[s].cause, others[s.of]-1))
	}
	return notes
}

// note describes a subject that fails, in others namespaces too.
func (s subject) note(cause string, others int) canonical.Note {
	switch of := s.of.(type) {
	case schema.GroupResource:
		lacks, where := "their owners are not known", ""
		if of == podsResource.GroupResource() {
			lacks = "the workloads of pods are not known"
		}
		if s.namespace != "" {
			where = " in namespace " + s.namespace
		}
		if others > 0 {
			where += fmt.Sprintf(" and %d others", others)
		}
		return canonical.Note{
			Cause:  fmt.Sprintf("the Kubernetes API server denies the right to get %s%s: %s", of, where, lacks),
			Remedy: fmt.Sprintf("grant it as deploy/kubernetes/rbac.yaml does: {apiGroups: [%q], resources: [%s], verbs: [get]}", of.Group, of.Resource),
		}
	case schema.GroupKind:
		return canonical.Note{
			Cause: fmt.Sprintf("the Kubernetes API server fails for objects of kind %s, so their owners are not known: %s", of, cause),
			Remedy: fmt.Sprintf("check whether kubectl get %s -A answers: "+
				"the conversion webhook of its CustomResourceDefinition may be broken, or its APIService unavailable", of),
		}
	}
	return canonical.Note{
		Cause:  "the Kubernetes API server does not answer correctly, so the workloads of new pods are not known: " + cause,
		Remedy: "check that this machine reaches it (network policies, --kube.config), and that the credentials are valid",
	}
}

// isOfKind reports whether an error is due to the requested kind, and not to the API server,
// which has just answered for the pod.
func isOfKind(ctx context.Context, err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	_, slow := errors.AsType[canonical.TimedOut](err)
	return slow && ctx.Err() == nil
}

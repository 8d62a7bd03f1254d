package holders

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// errTroubled means that the API server, which has just answered for a pod, fails for a kind of
// owner: its conversion webhook is broken, or the server that provides the kind is down.
var errTroubled = errors.New("the API server fails for this kind")

// troubles are the kinds for which the API server fails. Each is requested again after a pause,
// which doubles with each failure; the beginning and end of a trouble are logged. A kind that is
// no longer requested is forgotten. troubles are safe for concurrent use.
type troubles struct {
	logger *slog.Logger

	mu     sync.Mutex
	byKind map[schema.GroupKind]*trouble // knownKinds at most; others are requested each time
}

// trouble is the trouble of one kind.
type trouble struct {
	cause string
	pause time.Duration
	until time.Time // when to ask again
	asked time.Time // when a caller last wanted to
}

func newTroubles(logger *slog.Logger) *troubles {
	return &troubles{logger: logger, byKind: map[schema.GroupKind]*trouble{}}
}

// enter reports whether to ask for objects of a kind now. After a pause, only one caller may.
func (t *troubles) enter(kind schema.GroupKind, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.byKind[kind]
	if one == nil {
		return true
	}
	one.asked = now
	if now.Before(one.until) {
		return false
	}
	one.until = now.Add(2 * RequestTimeout) // until that caller has an answer
	return true
}

// take notes the outcome of a request for an object of a kind, and returns its error, or
// errTroubled if the kind is to blame. ctx is that of the look-up.
func (t *troubles) take(ctx context.Context, kind schema.GroupKind, err error) error {
	isTrouble := isOfKind(ctx, err)
	if err != nil && !isTrouble && !isAnswer(err) {
		return err
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	one := t.byKind[kind]
	switch {
	case !isTrouble && one == nil:
		return err
	case !isTrouble:
		delete(t.byKind, kind)
		t.logger.Info("the Kubernetes API server answers again for a kind", "kind", kind.String())
		return err
	case one == nil && len(t.byKind) >= knownKinds:
		return errTroubled
	case one == nil:
		one = &trouble{pause: firstPause, cause: err.Error(), asked: now}
		t.byKind[kind] = one
		n := troubleNote(kind, one.cause)
		t.logger.Warn("the holders of GPUs are not fully known", "cause", n.Cause, "remedy", n.Remedy)
	default:
		one.pause, one.cause = min(2*one.pause, longestPause), err.Error()
	}
	one.until = now.Add(one.pause/2 + rand.N(one.pause)) //nolint:gosec // spreads load
	return errTroubled
}

// isOfKind reports whether an error is due to the requested kind, and not to the API server,
// which has just answered for the pod.
func isOfKind(ctx context.Context, err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// forget forgets kinds that are no longer asked for, as after their pods are gone: a pod whose
// owner is unknown is looked up again sooner. The caller holds mu.
func (t *troubles) forget(now time.Time) {
	maps.DeleteFunc(t.byKind, func(_ schema.GroupKind, one *trouble) bool { return now.Sub(one.asked) > outOfUse })
}

// notes returns a note for each kind in trouble.
func (t *troubles) notes() (notes []canonical.Note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(time.Now())
	for kind, one := range t.byKind {
		notes = append(notes, troubleNote(kind, one.cause))
	}
	slices.SortFunc(notes, func(a, b canonical.Note) int { return strings.Compare(a.Cause, b.Cause) })
	return notes
}

func troubleNote(kind schema.GroupKind, cause string) canonical.Note {
	return canonical.Note{
		Cause:  "the Kubernetes API server fails for objects of kind " + kind.String() + ", so their owners are not known: " + cause,
		Remedy: "check whether kubectl get " + kind.String() + " -A answers: the conversion webhook of its CustomResourceDefinition may be broken, or its APIService unavailable",
	}
}

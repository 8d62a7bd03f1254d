package holders

import (
	"cmp"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// firstPause and longestPause bound the pause without requests for what fails: it doubles
	// from one failure to the next.
	firstPause   = time.Second
	longestPause = time.Minute
	// outOfUse is how long after its pause a failure is forgotten if nothing was requested since.
	outOfUse = 5 * time.Minute
)

// breaker keeps requests away from what fails: the whole API server, a kind of object, a right.
// After a pause, all callers may try again. The first failure is logged, and so is the end; what is
// no longer requested is forgotten. It is safe for concurrent use.
type breaker struct {
	logger *slog.Logger

	mu   sync.Mutex
	open map[string]*circuit // by what fails
}

// circuit is what fails. Those with one remedy are logged and noted as one.
type circuit struct {
	note  canonical.Note
	pause time.Duration
	until time.Time // when to try again
}

// wholeServer is the name of the API server among what fails.
const wholeServer = "the API server"

func newBreaker(logger *slog.Logger) *breaker {
	return &breaker{logger: logger, open: map[string]*circuit{}}
}

// allows reports whether to send a request now.
func (b *breaker) allows(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open[what]
	return c == nil || !time.Now().Before(c.until)
}

// fails reports whether something fails.
func (b *breaker) fails(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[what] != nil
}

// fail notes that a request failed, and reports whether that is news.
func (b *breaker) fail(what string, note canonical.Note) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, now := b.open[what], time.Now()
	if news = c == nil; news {
		if !b.has(note.Remedy) {
			b.logger.Warn("the holders of GPUs are not fully known", "cause", note.Cause, "remedy", note.Remedy)
		}
		c = &circuit{}
		b.open[what] = c
	}
	if c.note = note; !now.Before(c.until) { // else another caller has failed at the same time
		c.pause = min(max(2*c.pause, firstPause), longestPause)
		c.until = now.Add(c.pause/2 + rand.N(c.pause)) //nolint:gosec // spreads load
	}
	return news
}

// succeed notes that a request did not fail.
func (b *breaker) succeed(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.open[what]
	if c == nil {
		return
	}
	if delete(b.open, what); !b.has(c.note.Remedy) {
		b.logger.Info("the Kubernetes API server answers again", "for", what)
	}
}

// has reports whether anything with a remedy fails. The caller holds mu.
func (b *breaker) has(remedy string) bool {
	for _, c := range b.open {
		if c.note.Remedy == remedy {
			return true
		}
	}
	return false
}

// Notes returns the present problems, one for each remedy.
func (b *breaker) Notes() (notes []canonical.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.open, func(_ string, c *circuit) bool { return time.Since(c.until) > outOfUse })
	for _, c := range b.open {
		notes = append(notes, c.note)
	}
	slices.SortFunc(notes, func(x, y canonical.Note) int {
		return cmp.Or(cmp.Compare(x.Remedy, y.Remedy), cmp.Compare(x.Cause, y.Cause))
	})
	return slices.CompactFunc(notes, func(x, y canonical.Note) bool { return x.Remedy == y.Remedy })
}

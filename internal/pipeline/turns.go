package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"
)

// MaxReads is how many scraped sources are read at a time: each read takes a connection and the
// memory of a body.
const MaxReads = 15

// leastShare is the time that a read has at least, however many wait.
const leastShare = 200 * time.Millisecond

// Turns limits how many sources are read at a time, first come, first served. A read
// that has had its share of the time gives way to one that waits, and may wait for another
// turn, so that sources that hang do not keep others from being read. While no read waits,
// it may take as long as it is allowed to. It is safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	most    int
	share   time.Duration
	holders []*turn // in the order in which they began
	waiting []*turn // in the order in which they came
	timer   *time.Timer
}

// turn is the turn of one read.
type turn struct {
	begun   time.Time
	began   chan struct{} // closed when the turn begins
	giveWay func()
	asked   bool // to give way
}

// NewTurns returns turns for one source.
func NewTurns() *Turns { return &Turns{most: MaxReads, share: time.Hour} }

// Share sets the share of a read so that all of that many sources get a turn within a time
// even if each of them hangs. A share has a lower limit.
func (t *Turns) Share(sources int, within time.Duration) {
	rounds := max(1, (sources+t.most-1)/t.most)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share = max(within/time.Duration(rounds), leastShare)
}

// begin waits for a turn. giveWay is called, at most once and by a goroutine of its own, if the
// read must end because another waits. end must be called when the read has ended.
func (t *Turns) begin(ctx context.Context, giveWay func()) (end func(), err error) {
	one := &turn{began: make(chan struct{}), giveWay: giveWay}
	t.mu.Lock()
	t.waiting = append(t.waiting, one)
	t.next()
	t.mu.Unlock()
	select {
	case <-one.began:
		return func() { t.end(one) }, nil
	case <-ctx.Done():
		t.end(one) // the turn may just have begun
		return func() {}, ctx.Err()
	}
}

func (t *Turns) end(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := func(other *turn) bool { return other == one }
	t.holders, t.waiting = slices.DeleteFunc(t.holders, is), slices.DeleteFunc(t.waiting, is)
	t.next()
}

// next begins the turns that there is room for, and makes reads give way if others wait. The
// caller holds mu.
func (t *Turns) next() {
	now := time.Now()
	for len(t.waiting) > 0 && len(t.holders) < t.most {
		one := t.waiting[0]
		t.waiting = slices.Delete(t.waiting, 0, 1)
		one.begun = now
		t.holders = append(t.holders, one)
		close(one.began)
	}
	leave := len(t.waiting)
	for _, one := range t.holders {
		if leave == 0 {
			return
		}
		if rest := t.share - now.Sub(one.begun); !one.asked && rest > 0 {
			t.look(rest)
			return
		}
		if leave--; !one.asked {
			one.asked = true
			go one.giveWay()
		}
	}
}

// look calls next again after a time. The caller holds mu.
func (t *Turns) look(after time.Duration) {
	if t.timer != nil {
		t.timer.Reset(after)
		return
	}
	t.timer = time.AfterFunc(after, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next()
	})
}

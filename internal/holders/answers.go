package holders

import (
	"errors"
	"sync"
	"time"
)

// answers caches the results of a function by its argument. Concurrent callers with the same
// argument share one call. It is safe for concurrent use.
type answers[K comparable, V any] struct {
	// lives returns how long an answer counts, by its error; 0 is not at all.
	lives func(error) time.Duration

	mu   sync.Mutex
	kept *recent[K, *reply[V]]
}

type reply[V any] struct {
	done  chan struct{} // closed with value and err set
	value V
	err   error
	until time.Time
}

func newAnswers[K comparable, V any](size int, lives func(error) time.Duration) *answers[K, V] {
	return &answers[K, V]{lives: lives, kept: newRecent[K, *reply[V]](size)}
}

// get returns the answer to key. The first caller's ask makes the request for all, and bounds
// it.
func (a *answers[K, V]) get(key K, ask func() (V, error)) (V, error) {
	a.mu.Lock()
	got, ok := a.kept.get(key)
	if ok && got.isAnswered() && !time.Now().Before(got.until) {
		ok = false
	}
	if !ok {
		got = &reply[V]{done: make(chan struct{}), err: errAskedInVain}
		a.kept.put(key, got)
	}
	a.mu.Unlock()
	if ok {
		<-got.done
		return got.value, got.err
	}
	defer close(got.done)
	got.value, got.err = ask()
	got.until = time.Now().Add(a.lives(got.err))
	return got.value, got.err
}

// errAskedInVain is the error of callers that wait for a request that panicked.
var errAskedInVain = errors.New("the request was not answered")

func (a *reply[V]) isAnswered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

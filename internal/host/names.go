package host

import (
	"context"
	"os/user"
	"sync"
	"time"
)

const (
	// namesKept is how long a name is believed.
	namesKept = 10 * time.Minute
	// namesPatience is how long to wait for a name before its number will do. It
	// may be there for the next one who asks.
	namesPatience = 100 * time.Millisecond
	// maxNames bounds the names that are kept.
	maxNames = 4096
)

// Names are those of this machine's users and groups. They are kept for a while.
// Where a directory service has them, it may take its time, or hang; so each is
// looked up by a goroutine of its own, one at a time for the same id. A nil Names
// knows none.
type Names struct {
	lookUser, lookGroup func(id string) (name string, ok bool)

	mu   sync.Mutex
	kept map[nameKey]*name
}

type nameKey struct {
	group bool
	id    string
}

// name is one that was, or is being, looked up.
type name struct {
	begun time.Time
	found chan struct{} // closed when text is there
	text  string
}

// NewNames returns the names that the system gives by os/user: in a program built
// with cgo those of every service that nsswitch.conf names, else those of
// /etc/passwd and /etc/group.
func NewNames() *Names {
	return newNames(
		func(id string) (string, bool) {
			u, err := user.LookupId(id)
			if err != nil {
				return "", false
			}
			return u.Username, true
		},
		func(id string) (string, bool) {
			g, err := user.LookupGroupId(id)
			if err != nil {
				return "", false
			}
			return g.Name, true
		},
	)
}

func newNames(lookUser, lookGroup func(string) (string, bool)) *Names {
	return &Names{lookUser: lookUser, lookGroup: lookGroup, kept: map[nameKey]*name{}}
}

func (n *Names) user(ctx context.Context, id string) string {
	return n.of(ctx, nameKey{false, id})
}

func (n *Names) group(ctx context.Context, id string) string {
	return n.of(ctx, nameKey{true, id})
}

// of returns the name, or the id if there is none or it does not come in time.
func (n *Names) of(ctx context.Context, key nameKey) string {
	if n == nil || key.id == "" {
		return key.id
	}
	entry := n.find(key)
	if entry.isFound() { // which does not depend on ctx
		return entry.text
	}
	// What hangs has been waited for once.
	patience := time.NewTimer(namesPatience - time.Since(entry.begun))
	defer patience.Stop()
	select {
	case <-entry.found:
		return entry.text
	case <-patience.C:
	case <-ctx.Done():
	}
	return key.id
}

// find returns what is kept of key, and begins to look it up if that is nothing or
// old.
func (n *Names) find(key nameKey) *name {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if kept := n.kept[key]; kept != nil && (now.Sub(kept.begun) < namesKept || !kept.isFound()) {
		return kept
	}
	if len(n.kept) >= maxNames {
		clear(n.kept)
	}
	entry := &name{begun: now, found: make(chan struct{})}
	n.kept[key] = entry
	look := n.lookUser
	if key.group {
		look = n.lookGroup
	}
	go func() {
		defer close(entry.found)
		var ok bool
		if entry.text, ok = look(key.id); !ok || entry.text == "" {
			entry.text = key.id
		}
	}()
	return entry
}

func (e *name) isFound() bool {
	select {
	case <-e.found:
		return true
	default:
		return false
	}
}

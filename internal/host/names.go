package host

import (
	"context"
	"os/user"
	"sync"
	"time"
)

const (
	// nameLifetime is how long a name is cached.
	nameLifetime = 10 * time.Minute
	// namePatience is how long to wait for a name before using its number. A later caller
	// may get the name.
	namePatience = 100 * time.Millisecond
	// maxNames bounds the cache.
	maxNames = 4096
)

// Names caches the names of this machine's users and groups. A directory service may be
// slow or hang, so each look-up has its own goroutine, one at a time for the same id. A nil
// Names returns numbers.
type Names struct {
	lookUser, lookGroup func(id string) (name string, ok bool)

	mu    sync.Mutex
	cache map[nameKey]*name
}

type nameKey struct {
	group bool
	id    string
}

// name is a finished or running look-up.
type name struct {
	begun time.Time
	found chan struct{} // closed when text is set
	text  string
}

// NewNames returns the names that os/user finds: with cgo those of every service in
// nsswitch.conf, else those in /etc/passwd and /etc/group.
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
	return &Names{lookUser: lookUser, lookGroup: lookGroup, cache: map[nameKey]*name{}}
}

func (n *Names) user(ctx context.Context, id string) string {
	return n.of(ctx, nameKey{false, id})
}

func (n *Names) group(ctx context.Context, id string) string {
	return n.of(ctx, nameKey{true, id})
}

// of returns the name, or the id if there is none or the look-up takes too long.
func (n *Names) of(ctx context.Context, key nameKey) string {
	if n == nil || key.id == "" {
		return key.id
	}
	entry := n.find(key)
	if entry.isFound() { // even if ctx has ended
		return entry.text
	}
	// Only the first callers wait for a look-up that hangs.
	patience := time.NewTimer(namePatience - time.Since(entry.begun))
	defer patience.Stop()
	select {
	case <-entry.found:
		return entry.text
	case <-patience.C:
	case <-ctx.Done():
	}
	return key.id
}

// find returns the cached entry of key, or starts a look-up if there is none or it is too
// old.
func (n *Names) find(key nameKey) *name {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if cached := n.cache[key]; cached != nil && (now.Sub(cached.begun) < nameLifetime || !cached.isFound()) {
		return cached
	}
	if len(n.cache) >= maxNames {
		clear(n.cache)
	}
	entry := &name{begun: now, found: make(chan struct{})}
	n.cache[key] = entry
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

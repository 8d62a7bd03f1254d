package host

import (
	"context"
	"os/user"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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
	users, groups func(id string) (name string, err error)
	lookups       singleflight.Group

	mu    sync.Mutex
	cache map[string]cachedName // by kind and id
}

type cachedName struct {
	at   time.Time
	text string
}

// NewNames returns the names that os/user finds: with cgo those of every service in
// nsswitch.conf, else those in /etc/passwd and /etc/group.
func NewNames() *Names {
	return newNames(
		func(id string) (string, error) {
			u, err := user.LookupId(id)
			if err != nil {
				return "", err
			}
			return u.Username, nil
		},
		func(id string) (string, error) {
			g, err := user.LookupGroupId(id)
			if err != nil {
				return "", err
			}
			return g.Name, nil
		},
	)
}

func newNames(users, groups func(string) (string, error)) *Names {
	return &Names{users: users, groups: groups, cache: map[string]cachedName{}}
}

func (n *Names) user(ctx context.Context, id string) string {
	if n == nil {
		return id
	}
	return n.of(ctx, "user "+id, id, n.users)
}

func (n *Names) group(ctx context.Context, id string) string {
	if n == nil {
		return id
	}
	return n.of(ctx, "group "+id, id, n.groups)
}

// of returns the name, or the id if there is none or the look-up takes too long. Only the first
// callers wait for a look-up that hangs.
func (n *Names) of(ctx context.Context, key, id string, look func(string) (string, error)) string {
	if text, ok := n.cached(key); ok {
		return text
	}
	found := n.lookups.DoChan(key, func() (any, error) {
		text, err := look(id)
		if err != nil || text == "" {
			text = id
		}
		n.store(key, text)
		return text, nil
	})
	patience := time.NewTimer(namePatience)
	defer patience.Stop()
	select {
	case r := <-found:
		return r.Val.(string)
	case <-patience.C:
		if _, ok := n.cached(key); !ok {
			n.store(key, id) // until the name is found
		}
	case <-ctx.Done():
	}
	return id
}

// cached returns what the cache has, if it is not too old.
func (n *Names) cached(key string) (text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.cache[key]
	return c.text, ok && time.Since(c.at) < nameLifetime
}

func (n *Names) store(key, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.cache) >= maxNames {
		clear(n.cache)
	}
	n.cache[key] = cachedName{time.Now(), text}
}

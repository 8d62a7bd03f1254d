package host

import (
	"os/user"
	"sync"
)

// maxNames bounds the cache.
const maxNames = 4096

// Names caches the names of this machine's users and groups. A nil Names returns numbers.
type Names struct {
	users, groups func(id string) (name string, err error)

	mu    sync.Mutex
	cache map[string]string // by kind and id
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
	return &Names{users: users, groups: groups, cache: map[string]string{}}
}

func (n *Names) user(id string) string {
	if n == nil {
		return id
	}
	return n.of("user "+id, id, n.users)
}

func (n *Names) group(id string) string {
	if n == nil {
		return id
	}
	return n.of("group "+id, id, n.groups)
}

// of returns the name, or the id if there is none.
func (n *Names) of(key, id string, look func(string) (string, error)) string {
	n.mu.Lock()
	name, known := n.cache[key]
	n.mu.Unlock()
	if known {
		return name
	}
	name, err := look(id) // which may take long: not under the lock
	if err != nil || name == "" {
		return id
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.cache) >= maxNames {
		clear(n.cache)
	}
	n.cache[key] = name
	return name
}

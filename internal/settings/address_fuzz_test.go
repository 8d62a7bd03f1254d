package settings

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzAddresses: an address of --tui.url is a URL with a host, or is refused without what may be a
// password.
func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"node", "node:9401", "http://node/x", "[::1]:9401", "::1", "ftp://node", "u:p@node", "http://", "node/%zz", " ", "a b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, host string) {
		const password = "7331secret"
		if all, err := nodeURLs([]string{host, host}); err == nil {
			if u, err := url.Parse(all[0]); err != nil || u.Hostname() == "" || len(all) != 1 {
				t.Errorf("%q is %q: %v", host, all, err)
			}
		}
		if _, err := nodeURLs([]string{"u:" + password + "@" + host}); err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", host, err)
		}
	})
}

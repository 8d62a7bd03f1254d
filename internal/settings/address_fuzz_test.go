package settings

import (
	"net/url"
	"slices"
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
		all, err := NodeURLs("--tui.url", host, host)
		once, err2 := NodeURLs("--tui.url", host)
		if (err == nil) != (err2 == nil) || !slices.Equal(all, once) || err == nil && len(all) == 0 {
			t.Errorf("%q is %q, %v, and once %q, %v", host, all, err, once, err2)
		}
		for _, address := range all {
			if u, err := url.Parse(address); err != nil || u.Hostname() == "" {
				t.Errorf("%q is %q: %v", host, all, err)
			}
		}
		if _, err := NodeURLs("--tui.url", "u:"+password+"@"+host); err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", host, err)
		}
	})
}

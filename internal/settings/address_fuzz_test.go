package settings

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzAddresses: an address of --tui.url, or one of the neighbour's environment, is a URL with a
// host, or is refused without what may be a password.
func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"node", "node:9401", "http://node/x", "[::1]:9401", "::1", "ftp://node", "u:p@node", "http://", "node/%zz", " ", "a b"} {
		f.Add(text, "9400")
	}
	f.Add("node", "tcp://10.0.0.1:9400")
	f.Add("node", "65536")
	f.Fuzz(func(t *testing.T, host, port string) {
		const password = "7331secret"
		if all, err := nodeURLs([]string{host, host}); err == nil {
			if u, err := url.Parse(all[0]); err != nil || u.Hostname() == "" || len(all) != 1 {
				t.Errorf("%q is %q: %v", host, all, err)
			}
		}
		if _, err := nodeURLs([]string{"u:" + password + "@" + host}); err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", host, err)
		}
		env := map[string]string{"DCGM_HOST": host, "DCGM_PORT": port, "DCGM_METRICS_ENDPOINT": host, "HTTP_LISTEN_PORT": port}
		theirs := neighbour(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if address, err := theirs.value("source"); err == nil && address != "" && !strings.HasPrefix(address, "http://") {
			t.Errorf("%q, %q is %q", host, port, address)
		}
		if address, err := theirs.value("web.listen-address"); err == nil && address != "" && address != ":"+port {
			t.Errorf("%q is %q", port, address)
		}
	})
}

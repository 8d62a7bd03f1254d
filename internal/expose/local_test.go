package expose

import (
	"net/http"
	"testing"
)

func TestIsLocal(t *testing.T) {
	for _, c := range []struct {
		peer, host, header string
		want               bool
	}{
		{"127.0.0.1:4321", "localhost:9401", "", true},
		{"127.8.9.1:4321", "127.0.0.1", "", true},
		{"[::1]:4321", "[::1]:9401", "", true},
		{"[::1]:4321", "[::1]", "", true},
		{"[::ffff:127.0.0.1]:4321", "LocalHost", "User-Agent", true},
		{"10.0.0.7:4321", "localhost:9401", "", false},
		{"[fe80::1%eth0]:4321", "localhost:9401", "", false},
		{"[::ffff:10.0.0.7]:4321", "localhost:9401", "", false},
		{"0.0.0.0:1", "localhost", "", false},
		{"", "localhost", "", false},
		{"@", "localhost", "", false},
		{"127.0.0.1", "localhost", "", false},
		{"vm(2):1024", "localhost", "", false},
		// Through a proxy on this machine.
		{"127.0.0.1:4321", "localhost:9401", "X-Forwarded-For", false},
		{"127.0.0.1:4321", "localhost:9401", "X-Real-IP", false},
		{"127.0.0.1:4321", "localhost:9401", "Forwarded", false},
		{"127.0.0.1:4321", "localhost:9401", "Via", false},
		// By a name that is not ours alone.
		{"127.0.0.1:4321", "node-a:9401", "", false},
		{"127.0.0.1:4321", "localhost.evil.example:9401", "", false},
		{"127.0.0.1:4321", "10.0.0.7:9401", "", false},
		{"127.0.0.1:4321", "", "", false},
	} {
		r := &http.Request{RemoteAddr: c.peer, Host: c.host, Header: http.Header{}}
		if c.header != "" {
			r.Header.Set(c.header, "") // even if it says nothing
		}
		if got := isLocal(r); got != c.want {
			t.Errorf("from %q to %q with %q: %v", c.peer, c.host, c.header, got)
		}
	}
}

package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestLoopbackIsCanonicals: rules and program agree on which names are loopback.
func TestLoopbackIsCanonicals(t *testing.T) {
	pattern, err := strconv.Unquote(`"` + loopback + `"`) // as PromQL reads it
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile("^(?:" + pattern + ")$")
	for _, host := range []string{
		"localhost", "LOCALHOST", "localhost.", "localhost:9400", "localhost.localdomain", "LocalHost.localdomain.:9400",
		"127.0.0.1", "127.8.9.1:5555", "127.255.255.255", "::1", "[::1]", "[::1]:9400", "::ffff:127.0.0.1", "[::FFFF:127.0.0.1]:9400",
		"", "node1", "node127", "127", "1270", "127001", "12700.1", "127a", "127-0-0-1", "localhost1", "localhost.cluster", "mylocalhost",
		"10.0.0.1", "128.0.0.1", "1127.0.0.1", "0.0.0.0", "::", "::2", "[::2]:9400", "127.0.0.1.example", "127.example",
		"::ffff:10.0.0.1",
	} {
		if got, want := whole.MatchString(host), canonical.NamesLoopback(host); got != want {
			t.Errorf("%q: the rules say %v, the program %v", host, got, want)
		}
	}
}

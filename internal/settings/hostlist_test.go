package settings

import (
	"slices"
	"strings"
	"testing"
)

// TestHosts: lists as `scontrol show hostlist` writes them, and the names that `scontrol show hostnames` makes of them.
func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"":                          "",
		"node7":                     "node7",
		"node[1-3,7],login":         "node1 node2 node3 node7 login",
		"node[08-11]":               "node08 node09 node10 node11",
		"r[1-2]n[01,3]-ib":          "r1n01-ib r1n3-ib r2n01-ib r2n3-ib",
		"a, b":                      "a b",
		"http://n[1-2]:9401/x":      "http://n1:9401/x http://n2:9401/x",
		"[::1]:9401,[fe80::1]":      "[::1]:9401 [fe80::1]",
		"http://u:p[1-2]@node:9401": "http://u:p[1-2]@node:9401",
	} {
		if got, err := Hosts(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", list, got, err, want)
		}
	}
	for _, list := range []string{"node[1-", "node]1[", "node[[1]]", "node[]", "node[3-1]", "node[a]", "node[1-99999]", "n[1-999]m[1-999]", "n[-1]", "n[1,]"} {
		if got, err := Hosts(list); err == nil {
			t.Errorf("%q is %d hosts, want an error", list, len(got))
		}
	}
}

// FuzzHosts: a list is refused, or has few enough names without brackets of numbers, and does not depend on the order in which it is read.
func FuzzHosts(f *testing.F) {
	for _, list := range []string{"node[1-4,7]", "r[1-2]n[01,3]", "[::1]:9401", "a,b", "x[", "n[1-9]m[1-9]o[0-9]", "n[4294967295-4294967296]", "[@"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := Hosts(list)
		if err != nil {
			return
		}
		if len(hosts) > mostHosts || slices.Contains(hosts, "") {
			t.Errorf("%q: %d hosts", list, len(hosts))
		}
		twice, err := Hosts(list + "," + list)
		if err != nil && len(hosts)*2 <= mostHosts || err == nil && !slices.Equal(twice, slices.Concat(hosts, hosts)) {
			t.Errorf("%q is %q, and twice %q, %v", list, hosts, twice, err)
		}
	})
}

package canonical

import "testing"

func TestNamesLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "localhost.": true, "localhost:5555": true, "localhost.localdomain": true,
		"127.0.0.1": true, "127.8.9.1:5555": true, "::1": true, "[::1]": true, "[::1]:9400": true, "::ffff:127.0.0.1": true,
		"": false, "node1": false, "localhost1": false, "10.0.0.1": false, "128.0.0.1": false, "0.0.0.0": false, "::2": false,
		"localhost.cluster": false, "127.0.0.1.example": false,
	} {
		if got := NamesLoopback(host); got != want {
			t.Errorf("NamesLoopback(%q) = %t", host, got)
		}
	}
}

package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestDemoAddress: the demo listens on loopback and logs its URL, unless an address is given. A
// recording is not a demo, and listens on the default address.
func TestDemoAddress(t *testing.T) {
	for _, test := range []struct{ args, listens, says string }{
		{"--backend=replay", "localhost:9401", "open=http://localhost:9401/"},
		{"--backend=replay --web.listen-address=:9500", ":9500", "open=http://localhost:9500/"},
		{"--backend=replay --web.listen-address=:9401", ":9401", "open=http://localhost:9401/"},
		{"--replay=x.prom", ":9401", ""},
		{"--source=http://node:9400/metrics", ":9401", ""},
		{"--backend=replay --web.systemd-socket", ":9401", ""},
	} {
		o, err := parse(strings.Fields(test.args), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o.playDemo(slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Join(o.Listen, " "); got != test.listens {
			t.Errorf("%s: it listens on %s, want %s", test.args, got, test.listens)
		}
		if said := log.String(); test.says == "" && said != "" || !strings.Contains(said, test.says) {
			t.Errorf("%s: it says %q, want %q", test.args, said, test.says)
		}
	}
}

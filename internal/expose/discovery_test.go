package expose

import (
	"crypto/tls"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What is discovered can be scraped as Prometheus would, and is that source alone.
func TestDiscovery(t *testing.T) {
	first, second := board(), board()
	second.UUID = "GPU-second"
	server := serve(t, Options{Sources: []Source{
		sourceOf(snapshotOf("http://a:9400/metrics", first)),
		sourceOf(snapshotOf(`b & "c"`, second)),
	}})
	res, body := ask(t, "GET", server.URL+"/sd")
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "application/json" {
		t.Fatalf("%d, %q: Prometheus takes JSON alone", res.StatusCode, kind)
	}
	var groups []struct {
		Targets []string
		Labels  map[string]string
	}
	if err := json.Unmarshal(body, &groups); err != nil || len(groups) != 2 {
		t.Fatalf("%v, %d groups:\n%s", err, len(groups), body)
	}
	for i, uuid := range []string{first.UUID, second.UUID} {
		g := groups[i]
		if len(g.Targets) != 1 || "http://"+g.Targets[0] != server.URL || len(g.Labels) != 3 || g.Labels["instance"] != g.Labels["__param_source"] {
			t.Fatalf("group %d: %+v", i, g)
		}
		query := url.Values{"source": {g.Labels["__param_source"]}}
		res, page := ask(t, "GET", "http://"+g.Targets[0]+g.Labels["__metrics_path__"]+"?"+query.Encode())
		if res.StatusCode != 200 || !strings.Contains(string(page), `uuid="`+uuid+`"`) || strings.Count(string(page), "\nkpulse_source_up{") != 1 {
			t.Errorf("group %d, %+v: %d\n%.300s", i, g, res.StatusCode, page)
		}
	}
}

// Who came by TLS is sent there again.
func TestDiscoveryByTLS(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://node1:9401/sd", nil)
	r.TLS = &tls.ConnectionState{}
	w := httptest.NewRecorder()
	discovery([]Source{sourceOf(snapshotOf("s"))})(w, r)
	const want = `[{"targets":["node1:9401"],"labels":{"__metrics_path__":"/metrics","__param_source":"s","__scheme__":"https"}}]`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

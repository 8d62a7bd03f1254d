package expose

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestReadySaysWhatScrapesFeel: a young enough reading makes the proxy ready, and failures of
// later scrapes are still shown, on the landing page too.
func TestReadySaysWhatScrapesFeel(t *testing.T) {
	late, down, fine := sourceOf(snapshotOf("late", board())), sourceOf(snapshotOf("down", board())), sourceOf(snapshotOf("fine", board()))
	late.state.Late = tooSlow
	down.state.Failure, down.state.Late = refused, tooSlow
	server := serve(t, Options{Sources: NewSet(late, down, fine)})
	res, body := ask(t, "GET", server.URL+"/-/ready")
	want := "ready\nsource late: " + tooSlow.Error() + "\nsource down: " + refused.Error() + "\nsource down: " + tooSlow.Error() + "\n"
	if res.StatusCode != 200 || string(body) != want {
		t.Errorf("%d\n%s\nwant\n%s", res.StatusCode, body, want)
	}
	_, body = ask(t, "GET", server.URL+"/")
	for _, want := range []string{
		"● too slow</span> late", "● down</span> down", "● up</span> fine",
		"a scrape got no reading: " + tooSlow.Cause, "<dd>" + tooSlow.Remedy,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the landing page lacks %q", want)
		}
	}
	if n := strings.Count(string(body), tooSlow.Cause); n != 2 {
		t.Errorf("the landing page says it %d times", n)
	}

	late.ready, down.ready = tooSlow, refused
	server = serve(t, Options{Sources: NewSet(late, down)})
	res, body = ask(t, "GET", server.URL+"/-/ready")
	if res.StatusCode != 503 || string(body) != strings.TrimPrefix(want, "ready\n") {
		t.Errorf("not ready: %d\n%s", res.StatusCode, body)
	}
	_, body = ask(t, "GET", server.URL+"/")
	if strings.Contains(string(body), "<dt>State</dt>") || strings.Count(string(body), tooSlow.Cause) != 2 {
		t.Errorf("the landing page says it otherwise:\n%s", body)
	}
}

// TestReadySaysThatThereIsNoGPU: a source that answers without any is ready, and told of, by /-/ready and
// by the landing page.
func TestReadySaysThatThereIsNoGPU(t *testing.T) {
	bare, fine := sourceOf(snapshotOf("bare")), sourceOf(snapshotOf("fine", board()))
	bare.state.Devices, fine.state.Devices = 0, 1
	server := serve(t, Options{Sources: NewSet(bare, fine)})
	res, body := ask(t, "GET", server.URL+"/-/ready")
	want := "ready\nbare answers without any GPU; check that the driver finds them (nvidia-smi -L), and restart it after that\n"
	if res.StatusCode != 200 || string(body) != want {
		t.Errorf("%d\n%s\nwant\n%s", res.StatusCode, body, want)
	}
	if _, body = ask(t, "GET", server.URL+"/"); !strings.Contains(string(body), "● no GPU</span> bare") || !strings.Contains(string(body), "● up</span> fine") {
		t.Error("the landing page does not tell them apart")
	}
}

// TestDiscoveryOfNowhere: an empty target is useless.
func TestDiscoveryOfNowhere(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/sd", nil)
	r.Host = ""
	w := httptest.NewRecorder()
	discovery(NewSet(sourceOf(snapshotOf("s"))), nil)(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "no Host header") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted returns a client whose requests the functions answer in turn, the last one all that
// follow.
func scripted(answers ...http.HandlerFunc) *http.Client {
	n := 0
	return ForHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[min(n, len(answers)-1)](w, r)
		n++
	}))
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const healthyBody = `kpulse_gpu_info{hostname="n1",gpu="0",uuid="u"} 1
kpulse_source_up{source="s",backend="dcgm"} 1
kpulse_source_period_seconds{source="s",backend="dcgm"} 0.5
`

func TestFollowKeepsToThePeriodAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok, bad := answer(200, healthyBody), answer(502, "source s: exporter is away; start it\nmore")
		hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		f := NewFetcher(Target{URL: "http://user:secret@node:9401/metrics", Client: scripted(ok, ok, bad, hangs, ok)})
		ctx, cancel := context.WithCancel(t.Context())
		type seen struct {
			after time.Duration
			node  *Node
		}
		var all []seen
		begun := time.Now()
		f.Follow(ctx, func(n *Node) {
			if all = append(all, seen{time.Since(begun), n}); len(all) == 5 {
				cancel()
			}
		})
		for i, up := range []bool{true, true, false, false, true} {
			if all[i].node.Up != up || len(all[i].node.GPUs) != 1 || strings.Contains(all[i].node.URL+all[i].node.Err, "secret") {
				t.Errorf("fetch %d: %+v; want up %v with the GPU last seen", i, all[i].node, up)
			}
		}
		if all[1].after != 500*time.Millisecond || all[2].after != time.Second {
			t.Errorf("fetches after %v and %v; the period is 0.5 s", all[1].after, all[2].after)
		}
		if err := all[2].node.Err; err != "HTTP 502 Bad Gateway: source s: exporter is away; start it" {
			t.Errorf("error %q", err)
		}
		if pause := all[3].after - all[2].after; pause < fetchTimeout {
			t.Errorf("the hanging fetch ended after %v", pause)
		}
		if err := all[3].node.Err; !strings.Contains(err, "no answer within 10s") {
			t.Errorf("error of the hanging fetch: %q", err)
		}
		if !all[3].node.FetchedAt.Equal(begun.Add(500 * time.Millisecond)) {
			t.Errorf("after the failures the readings are from %v after the start, want 0.5s", all[3].node.FetchedAt.Sub(begun))
		}
	})
}

// nameless is a network in which no host has a name.
type nameless struct{}

func (nameless) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}}
}

func TestFetchErrors(t *testing.T) {
	server := httptest.NewTLSServer(answer(200, healthyBody))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, test := range []struct {
		name, want string
		target     Target
	}{
		{"not a proxy", "no series of kpulse-proxy", Target{URL: InProcess, Client: scripted(answer(200, "DCGM_FI_DEV_GPU_TEMP 1\n"))}},
		{"page", "HTTP 404 Not Found; give the whole address", Target{URL: "http://n/metrics", Client: scripted(answer(404, "<html>nothing</html>"))}},
		{"unknown CA", "unknown authority; name its CA", Target{URL: server.URL}},
		{"no TLS", "does the server want https://?", Target{URL: strings.Replace(server.URL, "https", "http", 1)}},
		{"credentials", "--tui.http-config", Target{URL: "http://n/metrics", Client: scripted(answer(401, "no"))}},
		{"control characters", "HTTP 500 Internal Server Error: a [31mb", Target{URL: "http://n/metrics", Client: scripted(answer(500, "a\x1b[31mb\r\n"))}},
		{"our own pipeline", "source s: is away; start it", Target{URL: InProcess, Client: scripted(answer(502, "source s: is away; start it\nx"))}},
		{"no URL", "this is not a URL", Target{URL: "http://[::1"}},
		{"no such host", "no host is called gpu7; check its name", Target{URL: "http://gpu7/metrics", Client: &http.Client{Transport: nameless{}}}},
		{"nobody there", "connection refused; does kpulse-proxy run there", Target{URL: "http://127.0.0.1:1/metrics"}},
	} {
		f := NewFetcher(test.target)
		f.fetch(t.Context())
		if f.Node.Up || !strings.Contains(f.Node.Err, test.want) || strings.Contains(f.Node.Err, "\n") {
			t.Errorf("%s: %q, want %q", test.name, f.Node.Err, test.want)
		}
	}
}

// TestRepeatedReadingsExpire checks that a response that repeats the previous reading does not
// make it a new one, however often it comes.
func TestRepeatedReadingsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading := func(at float64) http.HandlerFunc {
			return answer(200, fmt.Sprintf("%skpulse_source_last_read_timestamp_seconds{source=\"s\",backend=\"dcgm\"} %f\n", healthyBody, at))
		}
		first := reading(100)
		f := NewFetcher(Target{URL: "http://node:9401/metrics", Client: scripted(first, first, first, first, reading(100.5))})
		for i, want := range []Freshness{Fresh, Fresh, Stale, Expired, Fresh} {
			f.fetch(t.Context())
			if got, since := f.Node.Freshness(time.Now()); got != want || !f.Node.Up {
				t.Errorf("fetch %d: age %v of %v, up %v; want %v", i, got, since, f.Node.Up, want)
			}
			time.Sleep([]time.Duration{time.Second, time.Second, 4 * time.Second, 0, 0}[i])
		}
	})
}

// TestOnlyOursIsKept checks that lines of others take no memory, even without end, and that the
// beginning of a line of any length decides whether it is ours.
func TestOnlyOursIsKept(t *testing.T) {
	f := NewFetcher(Target{URL: "http://node:9401/metrics", Client: &http.Client{Transport: endless{}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f.fetch(t.Context())
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; f.Node.Up || !strings.Contains(f.Node.Err, "longer than 128 MiB") || taken > maxBody/4 {
		t.Errorf("%q, with %d bytes of memory", f.Node.Err, taken)
	}
	long := strings.Repeat("x", maxLine/2)
	ours := "kpulse_source_up{source=\"" + long + "\"} 1\n"
	f = NewFetcher(Target{URL: "http://node:9401/metrics", Client: scripted(answer(200, "DCGM_"+long+" kpulse_a 1\n"+ours+"x "+ours+"kpulse_build_info{version=\"7\"} 1"))})
	if f.fetch(t.Context()); len(f.Node.Sources) != 1 || f.Node.Sources[0].Name != long || f.Node.Version != "7" || f.Node.Skipped != 0 {
		t.Errorf("%d sources, version %q, %d lines skipped, error %q", len(f.Node.Sources), f.Node.Version, f.Node.Skipped, f.Node.Err)
	}
}

// endless answers with lines of others without end.
type endless struct{}

var othersLines = bytes.Repeat([]byte("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} "+strings.Repeat("4", 1000)+"\n"), 32)

func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(endless{}), Request: r}, nil
}

func (endless) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], othersLines)
	}
	return len(p), nil
}

func TestScrapedNodesAreNotScrapedOften(t *testing.T) {
	f := NewFetcher(Target{URL: "http://node:9401/metrics", Client: scripted(answer(200, "kpulse_source_up{source=\"s\"} 1\n"))})
	f.fetch(t.Context())
	if f.Node.Period != 2*time.Second || f.Node.Name != "node:9401" {
		t.Errorf("period %v, name %q", f.Node.Period, f.Node.Name)
	}
}

func TestFetchOverNetwork(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Accept-Encoding"); e != "identity" {
			t.Errorf("on the same machine Accept-Encoding is %q", e)
		}
		answer(200, healthyBody)(w, r)
	}))
	defer server.Close()
	f := NewFetcher(Target{URL: server.URL + "/metrics", Client: server.Client()})
	f.fetch(t.Context())
	if !f.Node.Up || f.Node.Name != "n1" {
		t.Errorf("%+v", f.Node)
	}
	target := Target{URL: strings.Replace(server.URL, "//", "//me:secret@", 1) + "/metrics?source=x&token=secret"}
	if got := target.pathURL("/api/v1/processes"); !strings.HasSuffix(got, server.Listener.Addr().String()+"/api/v1/processes") {
		t.Errorf("processes at %s", got)
	}
	if got := target.publicURL(); got != server.URL+"/metrics?source=x" {
		t.Errorf("shown as %s", got)
	}
}

// TestAllSeriesAreAskedFor: unless the target is Lean, or its URL names a form.
func TestAllSeriesAreAskedFor(t *testing.T) {
	for _, test := range []struct {
		target Target
		want   string
	}{
		{Target{URL: "http://n:9401/metrics"}, "http://n:9401/metrics?series=full"},
		{Target{URL: "http://me:secret@n/metrics?source=a%26b"}, "http://me:secret@n/metrics?source=a%26b&series=full"},
		{Target{URL: "http://n/metrics?series=lean"}, "http://n/metrics?series=lean"},
		{Target{URL: "http://n/metrics", Lean: true}, "http://n/metrics"},
		{Target{URL: "http://[::1"}, "http://[::1"},
	} {
		var asked string
		test.target.Client = &http.Client{Transport: noting(func(r *http.Request) { asked = r.URL.String() })}
		if Fetch(t.Context(), test.target); asked != test.want && strings.HasPrefix(test.want, "http://n") {
			t.Errorf("%s: asked for %s, want %s", test.target.URL, asked, test.want)
		}
		if got := test.target.readURL(); got != test.want {
			t.Errorf("%s: reads %s, want %s", test.target.URL, got, test.want)
		}
	}
}

// noting is told of requests, and fails them.
type noting func(*http.Request)

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	n(r)
	return nil, io.EOF
}

package exporter

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// wire answers every request with the same bytes.
type wire string

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(strings.NewReader(string(w))), r)
}

// FuzzAnswer: whatever an upstream sends, the reading is within the limit, or fails with a cause of
// one printable line and a remedy, without the password.
func FuzzAnswer(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, text := range []string{
		ok + "Content-Length: 4\r\n\r\na 1\n",
		ok + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\x1f\x8b\x08\x00\r\n0\r\n\r\n",
		ok + "Content-Encoding: \x1b[31m\r\n\r\n",
		ok + "Content-Type: text/html;\x7f\r\n\r\n<html>\n",
		ok + "Content-Length: 99999999\r\n\r\n",
		"HTTP/1.0 200\r\n\r\na 1\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://u:p@other/\x1b\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: /metrics?\xff\r\n\r\n",
		"HTTP/1.1 500 <script>\r\n\r\n",
		"SSH-2.0-OpenSSH\r\n",
	} {
		f.Add(text)
	}
	const limit, password = 1 << 12, "7331secret"
	f.Fuzz(func(t *testing.T, answer string) {
		s, err := New("http://u:"+password+"@node:9400/metrics", Options{MaxBody: limit, Client: &http.Client{Transport: wire(answer)}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := raw.Batch{Dict: raw.NewDict()}
		err = s.Read(context.Background(), &b)
		if len(b.Body) > limit {
			t.Errorf("a body of %d bytes is read", len(b.Body))
		}
		if err == nil {
			return
		}
		e, is := errors.AsType[*source.Error](err)
		if !is || e.Failure == "" || e.Remedy == "" || strings.ContainsFunc(e.Cause+e.Remedy, unicode.IsControl) {
			t.Fatalf("%q fails with %+v", answer, err)
		}
		if strings.Contains(e.Cause+e.Remedy, password) && !strings.Contains(answer, password) {
			t.Errorf("%q shows the password: %v", answer, e)
		}
	})
}

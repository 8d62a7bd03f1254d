package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// rawRequest is a request that no scraper sends, and the expected answer.
type rawRequest struct {
	request string // method and path, then header lines; or all bytes, if it ends in an empty line
	status  string // a pattern; if it matches the empty string, the connection may be closed instead
	lacks   string // absent from the answer, headers included
}

// shown returns the request for the page.
func (a rawRequest) shown() string {
	first, rest, more := strings.Cut(a.request, "\r\n")
	if len(first) > 60 {
		first = first[:60] + "…"
	}
	if rest = strings.TrimSpace(rest); more && rest != "" {
		first += " " + rest[:min(len(rest), 60)]
	}
	return first
}

// bytes returns the bytes to send.
func (a rawRequest) bytes() string {
	if strings.HasSuffix(a.request, "\r\n\r\n") {
		return a.request
	}
	first, headers, _ := strings.Cut(a.request, "\r\n")
	if headers != "" {
		headers += "\r\n"
	}
	return first + " HTTP/1.1\r\nHost: node\r\nConnection: close\r\n" + headers + "\r\n"
}

// dial connects to the program.
func (w *world) dial() net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.child.URL, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// ask sends a request and checks the answer.
func (w *world) ask(a rawRequest) {
	w.Helper()
	conn := w.dial()
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, a.bytes()) // it may be cut off
	want := regexp.MustCompile("^(" + a.status + ")$")
	answers := bufio.NewReader(conn)
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		if !want.MatchString("") {
			w.Errorf("%s gets no answer, want %s: %v", a.shown(), a.status, err)
		}
		return
	}
	var text strings.Builder
	_ = res.Write(&text) // with its body
	if !want.MatchString(res.Status[:3]) {
		w.Errorf("%s gets %s, want %s:\n%.500s", a.shown(), res.Status, a.status, text.String())
	}
	if a.lacks != "" && strings.Contains(text.String(), a.lacks) {
		w.Errorf("%s gets %q:\n%.1000s", a.shown(), a.lacks, text.String())
	}
}

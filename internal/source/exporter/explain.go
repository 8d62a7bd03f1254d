package exporter

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// symptom maps an error that came before any answer to words. In cause and
// remedy, URL, HOST and ADDRESS (host and port) stand for the upstream's; an empty cause is the error's
// own text.
type symptom struct {
	shows   func(error) bool
	failure source.Failure
	cause   string
	remedy  string
}

// httpConfig is where a Client comes from.
const httpConfig = "the source's http_config (--config.file)"

// symptoms in order: the first that shows is told.
var symptoms = []symptom{
	{during("proxyconnect"), source.Unreachable, "",
		"check proxy_url in " + httpConfig + ", and that the proxy there runs"},
	{is(syscall.ECONNREFUSED), source.Unreachable, "connection refused",
		"check that dcgm-exporter runs there: curl URL; or set --source"},
	{unresolved, source.Unreachable, "the name HOST does not resolve",
		"check the host in --source: getent hosts HOST"},
	{is(http.ErrSchemeMismatch), source.Unreachable, "it answers in plain HTTP",
		"write http:// in --source"},
	{as[*tls.CertificateVerificationError], source.Unreachable, "",
		"trust the CA that signed it, by ca_file in the tls_config of " + httpConfig + ", or SSL_CERT_FILE=/path/to/ca.pem in our environment, and use a host name that the certificate names"},
	{during("remote error"), source.Unreachable, "", // a TLS alert
		"present a certificate that the exporter accepts, by cert_file and key_file in the tls_config of " + httpConfig},
	{during("dial"), source.Unreachable, "",
		"check the network and firewalls on the way: curl URL; or set --source"},
	{hungUp, source.Truncated,
		"the connection was closed before an answer came",
		"see the exporter's log, and what answers: curl -v URL"},
	{func(error) bool { return true }, source.Broken, "",
		"see what answers there: curl -v URL; or set --source"},
}

// is shows where the error wraps one of targets.
func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

// as shows where the error wraps one of type E.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// hungUp shows where the upstream accepted and then closed the connection. Where
// it did so before the request was sent, net/http's error is not exported.
func hungUp(err error) bool {
	return is(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE)(err) ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// during shows where the network operation op failed.
func during(op string) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*net.OpError](err)
		return ok && e.Op == op
	}
}

// unresolved shows where there is no such host. Other troubles of name servers
// are better told in their own words.
func unresolved(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// letIn is what to do where we are not let in.
const letIn = "give credentials that it accepts, in " + httpConfig + " or in KPULSE_SOURCE: http://USER:PASSWORD@ADDRESS/…"

// statusRemedies by HTTP status; others have the remedy of their class.
var statusRemedies = map[int]string{
	http.StatusUnauthorized:       letIn,
	http.StatusForbidden:          letIn,
	http.StatusNotFound:           "point --source at the exporter's /metrics",
	http.StatusLoopDetected:       "point --source at the exporter, not at this proxy",
	http.StatusServiceUnavailable: "the exporter is starting or has too many scrapers: see its log, and curl -i URL",
}

// where names the upstream, and where its redirects led.
func (w *web) where() string {
	if w.landed == "" {
		return w.public
	}
	return w.public + " (redirected to " + w.said(w.landed) + ")"
}

// said makes text that came from the upstream fit to be shown: the first line of
// it, short, printable, without our secrets.
func (w *web) said(text string) string { return firstLine([]byte(w.secrets.Replace(text))) }

// quote is what a page of the upstream says, in quotes and behind lead; "" where
// our request holds secrets, which an error page may echo in any spelling.
func (w *web) quote(lead string, page []byte) string {
	text := w.said(string(page[:min(len(page), errorBody)]))
	if text == "" || w.secretive {
		return ""
	}
	return lead + `"` + text + `"`
}

// noAnswer explains a request that got no response.
func (w *web) noAnswer(ctx context.Context, err error, took time.Duration) *source.Error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e // of the redirect policy
	}
	err = bare(err)
	if e := w.ended(ctx, err, fmt.Sprintf("no answer within %s", round(took))); e != nil {
		return e
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok { // of a Client that reads credentials
		return &source.Error{Failure: source.Broken, Cause: w.public + ": " + file.Error(), Remedy: "let us read the file, or name another one in " + httpConfig, Err: err}
	}
	for _, s := range symptoms {
		if !s.shows(err) {
			continue
		}
		cause := w.fill(s.cause)
		if cause == "" {
			cause = w.said(err.Error())
		}
		return &source.Error{Failure: s.failure, Cause: w.public + ": " + cause, Remedy: w.fill(s.remedy), Err: err}
	}
	return nil // the last symptom always shows
}

// noBody explains a body that failed after n (decoded) bytes.
func (w *web) noBody(ctx context.Context, err error, n int, took time.Duration) *source.Error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e
	}
	if errors.Is(err, errTooLarge) || w.wire.N <= 0 {
		return tooLarge(w.where(), "the body", w.max, -1)
	}
	if e := w.ended(ctx, err, fmt.Sprintf("the body was not complete within %s, %d bytes came", round(took), n)); e != nil {
		return e
	}
	reason := w.said(err.Error())
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the connection was closed too early"
	case errors.Is(err, gzip.ErrHeader):
		reason = "it says gzip and is not"
	}
	return &source.Error{
		Failure: source.Truncated,
		Cause:   fmt.Sprintf("%s: the transfer was cut short after %d bytes: %s", w.where(), n, reason),
		Remedy:  "see the exporter's log, and whether all of it comes: curl --compressed -o /dev/null " + w.public,
		Err:     err,
	}
}

// ended returns the error of a read that ran out of time (with the cause late)
// or was cancelled, nil if neither.
func (w *web) ended(ctx context.Context, err error, late string) *source.Error {
	ne, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return cancelled(w.public)
	case ctx.Err() != nil:
		err = ctx.Err()
	case !ok || !ne.Timeout():
		return nil
	}
	return &source.Error{
		Failure: source.Timeout,
		Cause:   w.where() + ": " + late,
		Remedy:  "see how long it takes, and raise Prometheus' scrape_timeout above that: time curl -o /dev/null " + w.public,
		Err:     err,
	}
}

// badStatus explains a status other than 200, with the first line of what the
// upstream says about it.
func (w *web) badStatus(resp *http.Response) *source.Error {
	code := resp.StatusCode
	cause := strings.TrimSpace(fmt.Sprintf("%s: HTTP %d %s", w.where(), code, http.StatusText(code)))
	var page []byte
	if r, _, err := w.decoded(resp); err == nil {
		page, _ = io.ReadAll(io.LimitReader(r, errorBody))
	}
	cause += w.quote(": ", page)
	remedy, ok := statusRemedies[code]
	switch {
	case ok:
	case code == http.StatusBadRequest && bytes.Contains(page, []byte("HTTPS server")):
		remedy = "write https:// in --source" // what net/http's server says to plain HTTP
	case code >= 500:
		remedy = "see the exporter's log: journalctl -u dcgm-exporter, or kubectl logs"
	default:
		remedy = "see what answers there: curl -i URL"
	}
	return &source.Error{Failure: source.BadStatus, Cause: cause, Remedy: w.fill(remedy)}
}

func (w *web) notMetrics(body []byte) *source.Error {
	return &source.Error{
		Failure: source.NotMetrics,
		Cause:   w.where() + ": no line of the body is a metric" + w.quote("; it begins ", body),
		Remedy:  "point --source at the exporter's /metrics; see what answers there: curl " + w.public,
	}
}

// fill puts the upstream's URL and host into a symptom's text.
func (w *web) fill(s string) string {
	return strings.NewReplacer("URL", w.public, "HOST", w.request.URL.Hostname(), "ADDRESS", w.request.URL.Host).Replace(s)
}

// tooLarge explains a body over the limit; size is its length, -1 if unknown.
func tooLarge(name, what string, limit, size int64) *source.Error {
	cause := fmt.Sprintf("%s: %s is over the limit of %s", name, what, mebibytes(limit))
	enough := 2 * limit
	if size >= 0 {
		cause = fmt.Sprintf("%s: %s has %d bytes, over the limit of %s", name, what, size, mebibytes(limit))
		enough = max(enough, (size+1<<20-1)&^(1<<20-1))
	}
	return &source.Error{
		Failure: source.TooLarge,
		Cause:   cause,
		Remedy:  "if that is no mistake, raise --source.max-body=" + mebibytes(enough),
		Err:     errTooLarge,
	}
}

func cancelled(name string) *source.Error {
	return &source.Error{Failure: source.Broken, Cause: name + ": the read was cancelled", Err: context.Canceled}
}

// bare strips the *url.Error that net/http puts around an error: it quotes the
// whole URL, query included.
func bare(err error) error {
	for {
		e, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = e.Err
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

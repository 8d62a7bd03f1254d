package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// symptom describes an error that occurred before any answer. In cause and remedy, URL, HOST and
// ADDRESS (host and port) are replaced by the upstream's; an empty cause stands for the error's
// own text.
type symptom struct {
	matches func(error) bool
	failure source.Failure
	cause   string
	remedy  string
}

// httpConfig names the setting that configures a Client.
const httpConfig = "the source's http_config (--config.file)"

// nameAnother ends the remedies for a source that may be the wrong one.
const nameAnother = "; or name another source: --source or --config.file, without an exporter --backend=dcgm or nvml, for a demo --backend=replay"

// symptoms in order: the first that matches is reported.
var symptoms = []symptom{
	{during("proxyconnect"), source.Unreachable, "",
		"check proxy_url in " + httpConfig + ", and that the proxy there runs"},
	{is(syscall.ECONNREFUSED), source.Unreachable, "connection refused",
		"check that dcgm-exporter runs there: curl URL" + nameAnother},
	{unresolved, source.Unreachable, "the name HOST does not resolve",
		"check the host in the source's URL: getent hosts HOST"},
	{is(http.ErrSchemeMismatch), source.Unreachable, "it answers in plain HTTP",
		"write http:// in the source's URL"},
	{as[*tls.CertificateVerificationError], source.Unreachable, "",
		"trust the CA that signed it, by ca_file in the tls_config of " + httpConfig + ", or SSL_CERT_FILE=/path/to/ca.pem in the proxy's environment, and " +
			"use a host name that the certificate names"},
	{during("remote error"), source.Unreachable, "", // a TLS alert
		"present a certificate that the exporter accepts, by cert_file and key_file in the tls_config of " + httpConfig},
	{during("dial"), source.Unreachable, "",
		"check the network and firewalls on the way: curl URL" + nameAnother},
	{is(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE), source.Truncated,
		"the connection was closed before an answer came",
		"see the exporter's log, and what answers: curl -v URL"},
	{func(error) bool { return true }, source.Broken, "",
		"see what answers there: curl -v URL" + nameAnother},
}

// is matches an error that wraps one of targets.
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

// as matches an error that wraps one of type E.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// during matches a failure of the network operation op.
func during(op string) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*net.OpError](err)
		return ok && e.Op == op
	}
}

// unresolved matches an error for a host that does not exist. Other DNS errors are
// clearer in their own words.
func unresolved(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// letIn is the remedy if the upstream asks for credentials.
const letIn = "give credentials that it accepts, in " + httpConfig + " or in KPULSE_SOURCE: http://USER:PASSWORD@ADDRESS/…"

// statusRemedies are the remedies by HTTP status; badStatus has those of other statuses, by class.
var statusRemedies = map[int]string{
	http.StatusBadRequest:         "write https:// in the source's URL if that is what it serves; see curl -i URL",
	http.StatusUnauthorized:       letIn,
	http.StatusForbidden:          letIn,
	http.StatusNotFound:           "point the source at the exporter's /metrics",
	http.StatusLoopDetected:       "point the source at the exporter, not at this proxy",
	http.StatusServiceUnavailable: "the exporter is starting or has too many scrapers: see its log, and curl -i URL",
}

// where names the upstream, and where its redirects led.
func (t *transfer) where() string { return t.redirected(t.landed) }

// redirected names the upstream, and where redirects led, "" for nowhere.
func (w *web) redirected(to string) string {
	if to == "" {
		return w.public
	}
	return w.public + " (redirected to " + to + ")"
}

// shown returns the text of a URL to which the upstream redirects. It omits the path
// if our request contains secrets, which the path may echo.
func (w *web) shown(u *url.URL) string {
	if w.secretive {
		u = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
	return firstLine([]byte(publicName(u)))
}

// noAnswer explains a request that got no response.
func (t *transfer) noAnswer(ctx context.Context, err error, took time.Duration) *source.Error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e // from the redirect policy
	}
	for e, ok := errors.AsType[*url.Error](err); ok; e, ok = errors.AsType[*url.Error](err) {
		err = e.Err // net/http quotes the whole URL, query included
	}
	if e := t.ended(ctx, err, fmt.Sprintf("no answer within %s", round(took))); e != nil {
		return e
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok { // from a Client that reads credentials
		return failed(source.Broken, err, t.public+": "+file.Error(), "let kpulse-proxy read the file, or name another one in "+httpConfig)
	}
	i := slices.IndexFunc(symptoms, func(s symptom) bool { return s.matches(err) }) // the last one always matches
	cause := t.fill(symptoms[i].cause)
	if cause == "" {
		cause, err = t.text(err)
	}
	return failed(symptoms[i].failure, err, t.public+": "+cause, t.fill(symptoms[i].remedy))
}

// text returns the text of an error and the error to wrap. If our request contains
// secrets, which an answer may echo, it cuts what net/http quotes of the answer, and
// returns no error to wrap.
func (w *web) text(err error) (string, error) {
	text, _, quotes := strings.Cut(err.Error(), `"`)
	if w.secretive && quotes {
		return strings.TrimRight(firstLine([]byte(text)), ": "), nil
	}
	return firstLine([]byte(err.Error())), err
}

// noBody explains a body that failed after n (decoded) bytes.
func (t *transfer) noBody(ctx context.Context, err error, n int, took time.Duration) *source.Error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e
	}
	if errors.Is(err, errTooLarge) || t.wire.N <= 0 {
		return tooLarge(t.where(), "the body", t.limit, -1)
	}
	if e := t.ended(ctx, err, fmt.Sprintf("the body was not complete within %s; %d bytes arrived", round(took), n)); e != nil {
		return e
	}
	var reason string
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the connection was closed too early"
	case errors.Is(err, gzip.ErrHeader):
		reason = "its Content-Encoding is gzip, and its body is not"
	default:
		reason, err = t.text(err)
	}
	return failed(source.Truncated, err, fmt.Sprintf("%s: the transfer was cut short after %d bytes: %s", t.where(), n, reason),
		"see the exporter's log, and whether the whole body arrives: curl --compressed -o /dev/null "+t.public)
}

// ended returns the error of a read that ran out of time (with the cause late)
// or was cancelled, nil if neither.
func (t *transfer) ended(ctx context.Context, err error, late string) *source.Error {
	ne, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return failed(source.Broken, context.Canceled, t.public+": the read was cancelled", "")
	case ctx.Err() != nil:
		err = ctx.Err()
	case !ok || !ne.Timeout():
		return nil
	}
	return failed(source.Timeout, err, t.where()+": "+late,
		"see how long it takes, and raise Prometheus' scrape_timeout above that: time curl -o /dev/null "+t.public)
}

// badStatus explains a status other than 200.
func (t *transfer) badStatus(code int) *source.Error {
	remedy, ok := statusRemedies[code]
	switch {
	case ok:
	case code >= 500:
		remedy = "see the exporter's log: journalctl -u dcgm-exporter, or kubectl logs"
	default:
		remedy = "see what answers there: curl -i URL"
	}
	cause := strings.TrimSpace(fmt.Sprintf("%s: HTTP %d %s", t.where(), code, http.StatusText(code)))
	return failed(source.BadStatus, nil, cause, t.fill(remedy))
}

func (w *web) notMetrics(b *raw.Batch) *source.Error {
	if b.HasCRLF() {
		return failed(source.NotMetrics, nil, w.redirected(b.Landed)+": "+crlf, "have the exporter end its lines in LF alone: curl -s "+w.public+" | file -")
	}
	cause := w.redirected(b.Landed) + ": no line of the body is a metric"
	if b.ContentType != "" {
		cause += ", and its Content-Type is " + firstLine([]byte(b.ContentType))
	}
	return failed(source.NotMetrics, nil, cause, "point the source at the exporter's /metrics; see what answers there: curl -i "+w.public)
}

// crlf is the problem of a body that HasCRLF.
const crlf = "the lines of the body end in CRLF (\\r\\n), which Prometheus does not read"

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
	return failed(source.TooLarge, errTooLarge, cause, "if the size is right, raise --source.max-body="+mebibytes(enough))
}

// noMemory is the error of a body that does not fit beside what others use.
func noMemory(name string, m *source.Memory) *source.Error {
	return failed(source.NoMemory, errNoMemory, name+": its page does not fit into the memory that the other pages and answers leave, of "+mebibytes(m.Limit),
		"raise --memory.limit, and the limit of the container or unit, or read fewer sources with one proxy")
}

// failed returns an error of a read. err is the underlying one, nil for none.
func failed(f source.Failure, err error, cause, remedy string) *source.Error {
	return &source.Error{Failure: f, Cause: cause, Remedy: remedy, Err: err}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// firstLine returns the first line of text that is not blank, as it may be shown, at most 100 bytes of it.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return diag.Line(line, 100)
}

// mebibytes writes n in the largest unit that divides it, as --source.max-body
// reads it.
func mebibytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}

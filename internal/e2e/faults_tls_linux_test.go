package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// certified is the host name in an exporter's certificate.
const certified = "node"

// startSecured starts a program that reads an exporter over TLS. It trusts all certificates that
// faults show, except a stranger's.
func startSecured(t *testing.T, f fault) *world {
	t.Helper()
	e := startExporter(t)
	good := exporterCertificate(t, nil)
	e.secures(t, &tls.Config{Certificates: []tls.Certificate{good.pair}})
	trusted := good.pem
	if f.shows != nil {
		shown := exporterCertificate(t, f.shows)
		f.begin, trusted = func(w *world) { e.secures(w.T, &tls.Config{Certificates: []tls.Certificate{shown.pair}}) }, trusted+shown.pem
	}
	f.end = func(w *world) { e.secures(w.T, &tls.Config{Certificates: []tls.Certificate{good.pair}}) }
	f.files = map[string]string{"ca.pem": trusted}
	f.config = "sources: [{source: URL, poll: 0, http_config: {tls_config: {ca_file: ca.pem, server_name: " + certified + "}}}]"
	return startAt(t, f, e)
}

// shownCertificate is a certificate and its key, also as PEM.
type shownCertificate struct {
	pair tls.Certificate
	pem  string
}

func exporterCertificate(t *testing.T, change func(*x509.Certificate)) shownCertificate {
	t.Helper()
	text := certificate(t, func(c *x509.Certificate) {
		c.DNSNames = []string{certified}
		if change != nil {
			change(c)
		}
	})
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	return shownCertificate{pair, string(text)}
}

func tlsFaults() []fault {
	untrusted := func(words string) seen { return failedScrape(source.Unreachable, words, "trust the CA that signed it") }
	return []fault{
		{does: "shows a certificate that has expired", shows: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, seen: untrusted("expired")},
		{does: "shows a certificate that is not valid yet", shows: func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		}, seen: untrusted("not yet valid")},
		{does: "shows a certificate of another host", shows: func(c *x509.Certificate) { c.DNSNames = []string{"other"} }, seen: untrusted("valid for other, not node")},
		{does: "shows a stranger's certificate", begin: func(w *world) {
			w.exporter.secures(w.T, &tls.Config{Certificates: []tls.Certificate{exporterCertificate(w.T, nil).pair}})
		}, seen: untrusted("certificate signed by unknown authority")},
		{does: "asks for a client certificate", begin: func(w *world) {
			c := w.exporter.tls.Clone()
			c.ClientAuth = tls.RequireAnyClientCert
			w.exporter.secures(w.T, c)
		}, seen: failedScrape(source.Unreachable, "present a certificate that the exporter accepts")},
		{does: "speaks TLS 1.1 at most", begin: func(w *world) {
			c := w.exporter.tls.Clone()
			c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
			w.exporter.secures(w.T, c)
		}, seen: failedScrape(source.Unreachable, "protocol version")},
		{does: "speaks plain HTTP", begin: func(w *world) {
			w.exporter.leave()
			w.exporter.tls = nil
			w.exporter.listen(w.T)
		}, seen: failedScrape(source.Unreachable, "it answers in plain HTTP", "write http://")},
		{does: "closes the connection within the handshake", begin: func(w *world) {
			w.exporter.speaks(w.T, func(c net.Conn) { _, _ = c.Read(make([]byte, 10)) })
		}, seen: failedScrape(source.Truncated, "the connection was closed before an answer came")},
		{does: "hangs within the handshake", begin: func(w *world) { w.exporter.speaks(w.T, untilItLeaves) }, late: true, seen: tooLate("did not answer within")},
	}
}

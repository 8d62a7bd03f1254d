package e2e

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// upstreamFaults returns the faults of the exporter, and of the network between it and the program.
func upstreamFaults() []fault {
	var all []fault
	for _, some := range [][]fault{connectionFaults(), statusFaults(), transferFaults(), pageFaults(), lineFaults(), valueFaults(), fleetFaults()} {
		all = append(all, some...)
	}
	return all
}

// failedScrape is a failed scrape with these texts.
func failedScrape(kind source.Failure, says ...string) seen {
	return seen{status: http.StatusBadGateway, kind: kind, says: append(says, "URL")}
}

// tooLate is a scrape that timed out.
func tooLate(says ...string) seen {
	return seen{status: http.StatusGatewayTimeout, kind: source.Timeout, says: append(says, "URL")}
}

const header = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

// connectionFaults come before the first byte of a page.
func connectionFaults() []fault {
	early := failedScrape(source.Truncated, "the connection was closed before an answer came")
	turn := 0
	return []fault{
		{does: "alternates between nodes", exporter: func(w http.ResponseWriter, _ *http.Request) {
			page := reading(during) // of one node, and at each second and third request of another
			if turn++; turn%3 > 0 {
				page = strings.ReplaceAll(page, "GPU-1", "GPU-of-another-node")
			}
			_, _ = io.WriteString(w, page)
		}, seen: seen{lacks: []string{`action="reboot_node"} 1`}, log: []string{"a source alternates between nodes"},
			page: []string{"it answers for the boards of one node and then for those of another", "name the exporter of each node as a source of its own"}}},
		{does: "nothing listens", begin: func(w *world) { w.exporter.leave() }, end: func(w *world) { w.exporter.listen(w.T) },
			seen: failedScrape(source.Unreachable, "connection refused", "check that dcgm-exporter runs there")},
		{does: "its name does not resolve", cold: true, flags: []string{"--source=http://exporter..invalid:9400/metrics"}, // a name that is never sent to a DNS server
			seen: failedScrape(source.Unreachable, "the name exporter..invalid does not resolve", "getent hosts")},
		{does: "closes the connection instead of answering", exporter: wire(""), seen: early},
		{does: "resets the connection within its header", exporter: resets(header), seen: early},
		{does: "answers something other than HTTP", exporter: wire("SSH-2.0-OpenSSH_9.6\r\n"), seen: failedScrape(source.Broken, "malformed HTTP")},
		{does: "accepts, and never answers", exporter: hangsAfter(""), late: true, seen: tooLate("did not answer within")},
		{does: "hangs within its header", exporter: hangsAfter(header), late: true, seen: tooLate("did not answer within")},
		{does: "hangs within its page", exporter: hangsAfter(header + "\r\n" + reading(during)), late: true, seen: tooLate("did not answer within")},
		{does: "sends a page one byte at a time", exporter: drips(header+"\r\n", 50*time.Millisecond), late: true, seen: tooLate("did not answer within")},
	}
}

// statusFaults are answers with a status other than 200.
func statusFaults() []fault {
	bad := func(words string) seen { return failedScrape(source.BadStatus, "HTTP "+words) }
	return []fault{
		{does: "answers 204", exporter: status(204), seen: bad("204 No Content")},
		{does: "answers 301 without saying where", exporter: status(301), seen: bad("301 Moved Permanently")},
		{does: "answers 401", exporter: status(401, "WWW-Authenticate", `Basic realm="x"`), seen: failedScrape(source.BadStatus, "HTTP 401 Unauthorized", "give credentials that it accepts")},
		{does: "answers 404", exporter: status(404), seen: failedScrape(source.BadStatus, "HTTP 404 Not Found", "point the source at the exporter's /metrics")},
		{does: "answers 500", exporter: status(500), seen: failedScrape(source.BadStatus, "HTTP 500 Internal Server Error", "see the exporter's log")},
		{does: "answers 503", exporter: status(503), seen: failedScrape(source.BadStatus, "HTTP 503 Service Unavailable", "the exporter is starting or has too many scrapers")},
		{does: "redirects to itself", exporter: status(302, "Location", "/metrics"), seen: failedScrape(source.BadStatus, "redirect")},
		{does: "redirects to a file", exporter: status(302, "Location", "file:///etc/passwd"), seen: failedScrape(source.BadStatus)},
		{does: "is this proxy itself", cold: true, begin: func(w *world) { w.exporter.leave() }, flags: []string{"--web.listen-address=ADDRESS"},
			seen: failedScrape(source.BadStatus, "HTTP 508 Loop Detected", "point the source at the exporter, not at this proxy")},
	}
}

// transferFaults are pages damaged in transfer.
func transferFaults() []fault {
	cut := failedScrape(source.Truncated, "the transfer was cut short after")
	page := reading(during)
	packed := gzippedText(page)
	gzip := "Content-Encoding: gzip\r\n"
	return []fault{
		{does: "ends before its Content-Length", exporter: wire(header + "Content-Length: 1000\r\n\r\n" + page), seen: cut},
		{does: "ends before the last chunk", exporter: wire(header + "Transfer-Encoding: chunked\r\n\r\n" + chunk(page)), seen: cut},
		{does: "resets the connection within its page", exporter: resets(header + "Content-Length: 1000\r\n\r\n" + page), seen: cut},
		{does: "has two lengths", exporter: wire(header + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + page), seen: failedScrape(source.Broken, "message cannot contain multiple Content-Len")},
		{does: "announces more than --source.max-body", exporter: wire(header + "Content-Length: 99999999999\r\n\r\n" + page), seen: failedScrape(source.TooLarge, "--source.max-body")},
		{does: "sends more than --source.max-body", flags: []string{"--source.max-body=1MiB"}, exporter: says(strings.Repeat(page, 20_000)),
			seen: failedScrape(source.TooLarge, "over the limit of 1MiB", "raise --source.max-body=2MiB")},
		{does: "sends gzip that unpacks to more than --source.max-body", flags: []string{"--source.max-body=1MiB"},
			exporter: with(gzippedText(strings.Repeat(page, 20_000)), "Content-Encoding", "gzip"), seen: failedScrape(source.TooLarge, "over the limit of 1MiB", "raise --source.max-body=2MiB")},
		{does: "cuts its gzip", exporter: with(packed[:len(packed)-10], "Content-Encoding", "gzip"), seen: cut},
		{does: "declares plain text as gzip", exporter: with(page, "Content-Encoding", "gzip"), seen: failedScrape(source.Truncated, "its Content-Encoding is gzip, and its body is not")},
		{does: "compresses its page in a way that was not asked for", exporter: with("\x1b\x0e\x00\xf8%\x00\xc2\xa2\x84H", "Content-Encoding", "br"), seen: failedScrape(source.NotMetrics, "the body is encoded as br, which was not requested")},
		{does: "compresses its page, and sends no Content-Type", exporter: wire("HTTP/1.1 200 OK\r\n" + gzip + "Content-Length: " + itoa(len(packed)) + "\r\n\r\n" + packed),
			seen: seen{says: []string{temperature(during)}}},
	}
}

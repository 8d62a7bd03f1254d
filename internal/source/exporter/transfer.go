package exporter

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// transfer is one request to the upstream and its answer, with memory that the next one
// reuses.
type transfer struct {
	*web
	bodyReader
	landed string           // where redirects ended, "" if at public
	wire   io.LimitedReader // the body as transferred
	unzip  gzip.Reader
}

// decoded returns the reader of resp's plain body, and its length or -1. The
// reader belongs to t. An empty body is empty in any encoding.
func (t *transfer) decoded(resp *http.Response) (io.Reader, int64, error) {
	t.wire = io.LimitedReader{R: resp.Body, N: t.limit + 1}
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		// Not limited: read has its own limit, and the body signals its end
		// together with its last bytes.
		return resp.Body, resp.ContentLength, nil
	case "gzip", "x-gzip":
		err := t.unzip.Reset(&t.wire)
		if errors.Is(err, io.EOF) {
			return http.NoBody, 0, nil
		}
		return &t.unzip, -1, err
	default:
		return nil, 0, failed(source.NotMetrics, nil, t.where()+": the body is encoded as "+firstLine([]byte(encoding))+", which was not requested",
			"have the server send gzip or plain text: curl -i "+t.public)
	}
}

// endsUnsaid reports whether only the end of the connection marks the end of the body.
// A body that is cut short looks the same.
func endsUnsaid(resp *http.Response) bool {
	zipped := strings.Contains(strings.ToLower(resp.Header.Get("Content-Encoding")), "gzip") // marks its own end
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed && !zipped
}

// leaveUnfinished drops the last line of the Body if it lacks its newline: its value
// may be cut, such as 41 for 412.
func leaveUnfinished(b *raw.Batch) {
	if whole := bytes.LastIndexByte(b.Body, '\n') + 1; whole < len(b.Body) {
		b.Body, b.Unfinished = b.Body[:whole], true
	}
}

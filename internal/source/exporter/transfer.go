package exporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

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

// fetch makes one request, and its answer the Body of b.
func (t *transfer) fetch(ctx context.Context, b *raw.Batch) error {
	start := time.Now()
	t.landed = ""
	resp, err := t.client.Do(t.ask(ctx))
	if err != nil {
		return t.noAnswer(ctx, err, time.Since(start))
	}
	defer func() {
		resp.Body.Close()
		t.wire.R = nil // do not keep the response alive between reads
	}()
	if publicName(resp.Request.URL) != t.public {
		t.landed = t.shown(resp.Request.URL)
	}
	if resp.StatusCode != http.StatusOK {
		return t.badStatus(resp.StatusCode)
	}
	if resp.ContentLength > t.limit {
		return tooLarge(t.where(), "the body", t.limit, resp.ContentLength)
	}
	r, size, err := t.decoded(resp)
	if err != nil {
		return t.noBody(ctx, err, 0, time.Since(start))
	}
	body, err := t.read(b.Body, r, size)
	if err != nil {
		return t.noBody(ctx, err, len(body), time.Since(start))
	}
	b.Body, b.ContentType, b.Landed = body, resp.Header.Get("Content-Type"), t.landed
	if endsUnsaid(resp) {
		leaveUnfinished(b)
	}
	return nil
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
		return nil, 0, &source.Error{
			Failure: source.NotMetrics,
			Cause:   t.where() + ": the body is encoded as " + firstLine([]byte(encoding)) + ", which was not requested",
			Remedy:  "have the server send gzip or plain text: curl -i " + t.public,
		}
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

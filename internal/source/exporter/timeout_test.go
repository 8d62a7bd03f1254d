package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// pipeClient dials a server that sends answer and then nothing. There is no
// socket, so that the fake clock of synctest can advance.
func pipeClient(answer string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				if skipRequest(theirs) == nil {
					io.WriteString(theirs, answer)
				}
				io.Copy(io.Discard, theirs)
			}()
			return ours, nil
		},
	}}
}

func TestTimeouts(t *testing.T) {
	const header = "Transfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		answer string // the connection then stays open
		failureCase
	}{
		{"", failureCase{name: "no answer", failure: source.Timeout, cause: "no answer within 10s", remedy: "scrape_timeout"}},
		{ok200 + header + fmt.Sprintf("%x\r\n%s\r\n", len(page), page), failureCase{
			name: "no end", failure: source.Timeout, cause: fmt.Sprintf("%d bytes arrived", len(page)), remedy: "time curl",
		}},
		{"HTTP/1.1 500 Internal Server Error\r\n" + header + "7\r\nno GPU\n\r\n", failureCase{
			name: "slow 500", failure: source.BadStatus, cause: "HTTP 500 Internal Server Error", remedy: "log",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.target, tt.opts = "http://node", Options{Client: pipeClient(tt.answer)}
				tt.check(t)
			})
		})
	}
}

func TestTimeoutIsTheEarlierDeadline(t *testing.T) {
	for _, tt := range []struct {
		option, ctx, want time.Duration
	}{
		{0, time.Hour, 10 * time.Second},
		{0, 3 * time.Second, 3 * time.Second},
		{time.Minute, 0, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, "http://node", Options{Timeout: tt.option, Client: pipeClient("")})
			ctx := context.Background()
			if tt.ctx > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, tt.ctx)
				defer cancel()
			}
			start := time.Now()
			err := s.Read(ctx, &raw.Batch{})
			if took := time.Since(start); took != tt.want {
				t.Errorf("took %v, want %v", took, tt.want)
			}
			if e := source.AsError(err); e.Failure != source.Timeout || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(e.Cause, "no answer within "+tt.want.String()) {
				t.Errorf("got %s %v", e.Failure, err)
			}
		})
	}
}

func TestCancelledRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "http://node", Options{Client: pipeClient("")})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		err := s.Read(ctx, &raw.Batch{})
		if !errors.Is(err, context.Canceled) || source.AsError(err).Failure == source.Timeout {
			t.Errorf("got %v", err)
		}
	})
}

package app

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// repeatAfter is the least time between two warnings that connections cannot be accepted.
const repeatAfter = time.Minute

// serverLog receives the log lines of net/http. Most are about single clients and are for
// debugging; that no client can connect is a warning. It implements io.Writer.
type serverLog struct {
	logger *slog.Logger
	failed prometheus.Counter
	warned atomic.Int64 // Unix time
}

func newServerLog(logger *slog.Logger) *serverLog {
	return &serverLog{logger: logger, failed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kpulse_proxy_http_accept_failures_total",
		Help: "Connections that could not be accepted, mostly for lack of file descriptors.",
	})}
}

// Write logs one line of net/http, which retries a failed accept itself, at most a second later.
func (l *serverLog) Write(line []byte) (int, error) {
	cause, found := strings.CutPrefix(string(bytes.TrimSpace(line)), "http: Accept error: ")
	if !found {
		l.logger.Debug(cause)
		return len(line), nil
	}
	l.failed.Inc()
	if now, before := time.Now().Unix(), l.warned.Load(); now-before >= int64(repeatAfter.Seconds()) && l.warned.CompareAndSwap(before, now) {
		l.logger.Warn("cannot accept connections", "cause", cause, "remedy", "if files are the limit, raise it (LimitNOFILE= of the systemd unit, ulimit -n), or find the clients that hold connections: ss -tnp")
	}
	return len(line), nil
}

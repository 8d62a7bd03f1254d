package app

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// acceptFailed begins the line that net/http logs when it cannot accept a connection. It retries
// itself, at most a second later.
const acceptFailed = "http: Accept error: "

// repeatAfter is the least time between two warnings that connections cannot be accepted.
const repeatAfter = time.Minute

// serverLog receives the log lines of net/http. Most are about single clients and are for
// debugging; that no client can connect is a warning. It implements io.Writer.
type serverLog struct {
	logger *slog.Logger
	failed prometheus.Counter

	mu     sync.Mutex
	warned time.Time
}

func newServerLog(logger *slog.Logger) *serverLog {
	return &serverLog{logger: logger, failed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kpulse_proxy_http_accept_failures_total",
		Help: "Connections that could not be accepted, mostly for lack of file descriptors.",
	})}
}

// Write logs one line of net/http.
func (l *serverLog) Write(line []byte) (int, error) {
	cause, found := strings.CutPrefix(string(bytes.TrimSpace(line)), acceptFailed)
	if !found {
		l.logger.Debug(cause)
		return len(line), nil
	}
	l.failed.Inc()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.warned) >= repeatAfter {
		l.warned = now
		l.logger.Warn("cannot accept connections", "cause", cause, "remedy", remedyOf(cause))
	}
	return len(line), nil
}

// remedyOf returns what to do about a failed accept.
func remedyOf(cause string) string {
	switch {
	case strings.Contains(cause, "too many open files in system"):
		return "raise fs.file-max of this machine, or find the process that holds its files"
	case strings.Contains(cause, "too many open files"):
		return "raise the limit of open files (LimitNOFILE= of the systemd unit, ulimit -n), or find the clients that hold connections: ss -tnp"
	}
	return "see what this machine has run out of"
}

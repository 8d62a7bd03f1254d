package app

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// logPatience is how long a line of the log may block its caller.
	logPatience = 250 * time.Millisecond
	// logBacklog is how many lines may wait for the log's reader; further ones are lost.
	logBacklog = 1000
)

// logWriter writes the log of a server. A log that is not read, such as a full pipe, blocks only
// the log: a scrape that logs waits for logPatience, and the next ones do not wait. logWriter
// implements io.Writer.
type logWriter struct {
	out  io.Writer
	lost prometheus.Counter
	// tell, unless nil, is called with the number of lost lines once lines are written again.
	tell func(lost int)
	// json means that the lines are JSON.
	json bool

	mu      sync.Mutex
	lines   [][]byte      // waiting to be written
	missing int           // lines lost since the last call of tell
	done    chan struct{} // closed when all lines are written; nil if none is waiting
}

func newLogWriter(out io.Writer) *logWriter {
	return &logWriter{out: out, lost: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kpulse_proxy_log_lines_lost_total",
		Help: "Log lines that were lost because the log was not read in time.",
	})}
}

// shown returns a copy of a line that is safe for a terminal. Logfmt quotes control characters
// itself; JSON does not quote all of them.
func (l *logWriter) shown(line []byte) []byte {
	if l.json {
		return diag.AppendJSON(nil, line)
	}
	return bytes.Clone(line)
}

// Write writes a line, or queues it if the previous one is stuck.
func (l *logWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	if len(l.lines) < logBacklog {
		l.lines = append(l.lines, l.shown(line))
	} else {
		l.missing++
		l.lost.Inc()
	}
	done, stuck := l.done, l.done != nil
	if !stuck {
		done = make(chan struct{})
		l.done = done
		go l.drain()
	}
	l.mu.Unlock()
	if !stuck {
		waitFor(done)
	}
	return len(line), nil
}

// drain writes the waiting lines.
func (l *logWriter) drain() {
	for {
		l.mu.Lock()
		if len(l.lines) == 0 {
			break
		}
		line := l.lines[0]
		l.lines = l.lines[1:]
		l.mu.Unlock()
		if _, err := l.out.Write(line); err != nil {
			l.lost.Inc() // there is nowhere else to report it
		}
	}
	lost := l.missing
	l.missing, l.lines = 0, nil
	close(l.done)
	l.done = nil
	l.mu.Unlock()
	if lost > 0 && l.tell != nil {
		l.tell(lost)
	}
}

// flush waits for the waiting lines, unless they are stuck.
func (l *logWriter) flush() {
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done != nil {
		waitFor(done)
	}
}

// waitFor waits until done is closed, but no longer than logPatience.
func waitFor(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(logPatience):
	}
}

package app

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipe is a reader of the log that reads a line on demand.
type pipe struct {
	take chan struct{}
	read []string
}

func (p *pipe) Write(line []byte) (int, error) {
	<-p.take
	p.read = append(p.read, string(line))
	return len(line), nil
}

// TestLogWriter: a line is written before Write returns. If the log is not read, only the first
// line blocks its caller; lost lines are counted and reported.
func TestLogWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &pipe{take: make(chan struct{}, 1)}
		l := newLogWriter(out)
		told := 0
		l.tell = func(lost int) { told += lost }
		begun := time.Now()
		out.take <- struct{}{}
		fmt.Fprint(l, "written\n")
		if len(out.read) != 1 || time.Since(begun) > 0 {
			t.Fatalf("after %s: %q", time.Since(begun), out.read)
		}
		const lines = 1 + logBacklog + 5 // the first of them is on its way
		for n := range lines {
			fmt.Fprintf(l, "%d\n", n)
		}
		if waited := time.Since(begun); waited != logPatience {
			t.Errorf("%d unread lines take %s", lines, waited)
		}
		l.flush()
		close(out.take)
		synctest.Wait()
		if got := strings.Join(out.read[1:4], ""); len(out.read) != 1+lines-5 || got != "0\n1\n2\n" {
			t.Errorf("%d lines are written, including %q", len(out.read), got)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(l.lost)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if lost := families[0].GetMetric()[0].GetCounter().GetValue(); lost != 5 || told != 5 {
			t.Errorf("%v lines are counted as lost, %d told", lost, told)
		}
		l.flush()
	})
}

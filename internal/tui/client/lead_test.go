package client

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// startLead returns a Fetcher whose source gives a tick of a second, a millisecond after each value
// of Ticks; none from the tick stuck on. paced is closed once the source is to keep its pace.
func startLead(begin time.Time, lead, stuck int) (f *Fetcher, paced chan struct{}) {
	ticks, paced := make(chan struct{}), make(chan struct{})
	var given atomic.Int64
	go func() {
		for range ticks {
			time.Sleep(time.Millisecond)
			if given.Load()+1 < int64(stuck) {
				given.Add(1)
			}
		}
		close(paced)
	}()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, healthyBody+fmt.Sprintf("kpulse_source_last_read_timestamp_seconds{source=\"s\",backend=\"dcgm\"} %d\n", begin.Unix()+given.Load()))
	})
	return NewFetcher(Target{URL: InProcess, Client: ForHandler(page), Lead: lead, Ticks: ticks}), paced
}

// TestLead checks that every tick of the last minute of a lead is fetched, and every second one
// before, in order and with their own times, and that the source then keeps its pace.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f, paced := startLead(begin, 100, 1<<20)
		var ticks []int
		f.Lead(t.Context(), func(n *Node) {
			if !n.FetchedAt.Equal(n.At) {
				t.Errorf("the reading of %v has the time %v", n.At, n.FetchedAt)
			}
			ticks = append(ticks, int(n.At.Sub(begin)/time.Second))
		})
		<-paced
		if n := len(ticks); n != 80 || !slices.IsSorted(ticks) || ticks[n-1]-ticks[n-60] != 59 || ticks[20]-ticks[0] < 38 {
			t.Errorf("fetched %v", ticks)
		}
	})
}

// TestLeadGivesUp checks that a lead ends if its source gives no more ticks, or cannot be read.
func TestLeadGivesUp(t *testing.T) {
	for _, stuck := range []int{5, 1} {
		synctest.Test(t, func(t *testing.T) {
			f, paced := startLead(time.Now(), 100, stuck)
			n, begun := 0, time.Now()
			f.Lead(t.Context(), func(*Node) { n++ })
			<-paced
			if took := time.Since(begun); n < 1 || n > 3 || took > leadTime+time.Second {
				t.Errorf("%d nodes within %v", n, took)
			}
		})
	}
}

package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// stepper is a Playback with ticks of a second, each of which takes a millisecond to come. Ticks
// from stuck on never come.
type stepper struct {
	state PlaybackState
	begin time.Time
	stuck int
	calls []string
}

func (s *stepper) Pause(paused bool) {
	s.state.Paused = paused
	s.calls = append(s.calls, fmt.Sprint("pause ", paused))
}

func (s *stepper) Step(n int) {
	time.Sleep(time.Millisecond)
	if tick := s.state.Tick + n; tick < s.stuck {
		s.state.Tick, s.state.At = tick, s.begin.Add(time.Duration(tick)*time.Second)
	}
}
func (s *stepper) SetSpeed(float64)     {}
func (s *stepper) Restart()             {}
func (s *stepper) State() PlaybackState { return s.state }

// page answers with the tick of the previous request: a page may lag behind.
func (s *stepper) page() *http.Client {
	served := s.state.At
	return ForHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, healthyBody+fmt.Sprintf("kpulse_source_last_read_timestamp_seconds{source=\"s\",backend=\"dcgm\"} %.3f\n", float64(served.UnixMilli())/1e3))
		served = s.state.At
	}))
}

// TestLead checks that every tick of the last minute of a lead is fetched, and every second one
// before, in order, and that the recording continues from there.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &stepper{begin: time.Now(), stuck: 1 << 20}
		p.Step(1)
		f := NewFetcher(Target{URL: InProcess, Client: p.page(), Playback: p, Lead: 100})
		var ticks []int
		f.Lead(t.Context(), func(n *Node) { ticks = append(ticks, int(n.At.Sub(p.begin)/time.Second)) })
		var want []int
		for tick := 2; tick <= 40; tick += 2 {
			want = append(want, tick)
		}
		for tick := 41; tick <= 100; tick++ {
			want = append(want, tick)
		}
		if !slices.Equal(ticks, want) {
			t.Errorf("fetched %v, want %v", ticks, want)
		}
		if p.state.Paused || !slices.Equal(p.calls, []string{"pause true", "pause false"}) {
			t.Errorf("left %+v after %q", p.state, p.calls)
		}
	})
}

// TestLeadGivesUp checks that a lead ends if its source gives no more ticks, and with the program.
func TestLeadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &stepper{begin: time.Now(), stuck: 5}
		p.Step(1)
		f := NewFetcher(Target{URL: InProcess, Client: p.page(), Playback: p, Lead: 100})
		n, begun := 0, time.Now()
		f.Lead(t.Context(), func(*Node) { n++ })
		if took := time.Since(begun); n != 2 || p.state.Paused || took > 6*time.Second {
			t.Errorf("%d nodes within %v, paused %v", n, took, p.state.Paused)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		if f.Lead(ctx, func(*Node) { n++ }); n != 2 || time.Since(begun) > time.Second {
			t.Errorf("%d nodes after the end", n)
		}
	})
}

package replay

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// fiveBodies returns expositions with the readings 1 to 5.
func fiveBodies() string {
	var text strings.Builder
	for i := range 5 {
		fmt.Fprintf(&text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} %d\n# EOF\n", i+1)
	}
	return text.String()
}

// playing reads ticks in a goroutine, and records when each came.
type playing struct {
	t      *testing.T
	s      *Source
	c      *Controls
	ticks  chan cameTick
	begun  time.Time
	cancel context.CancelFunc
}

type cameTick struct {
	value float64
	stamp time.Duration // after start
	came  time.Duration // after the beginning of the test
}

func play(t *testing.T, s *Source, c *Controls) *playing {
	ctx, cancel := context.WithCancel(t.Context())
	p := &playing{t: t, s: s, c: c, ticks: make(chan cameTick, 100), begun: time.Now(), cancel: cancel}
	go func() {
		defer close(p.ticks)
		var b raw.Batch
		for s.Read(ctx, &b) == nil {
			p.ticks <- cameTick{b.Samples[0].Value, b.At.Sub(start), time.Since(p.begun)}
		}
	}()
	return p
}

// after lets time pass and checks the ticks that came meanwhile:
// "value@stamp/came" each, in seconds.
func (p *playing) after(d time.Duration, want string) {
	p.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	var got []string
	for len(p.ticks) > 0 {
		tick := <-p.ticks
		got = append(got, fmt.Sprintf("%g@%g/%g", tick.value, tick.stamp.Seconds(), tick.came.Seconds()))
	}
	if text := strings.Join(got, " "); text != want {
		p.t.Errorf("after %v: %q, want %q", time.Since(p.begun), text, want)
	}
}

func (p *playing) is(want string) {
	p.t.Helper()
	at := p.c.Position()
	got := fmt.Sprintf("%d/%d", at.Tick, at.Ticks)
	if at.Paused {
		got += " paused"
	}
	if at.Ended {
		got += " ended"
	}
	if got != want {
		p.t.Errorf("after %v: %s, want %s", time.Since(p.begun), got, want)
	}
}

func TestControls(t *testing.T) {
	path := file(t, fiveBodies())
	synctest.Test(t, func(t *testing.T) {
		c := NewControls()
		s, err := Open(path, Options{Start: start, Controls: c})
		if err != nil {
			t.Fatal(err)
		}
		p := play(t, s, c)
		p.after(1500*time.Millisecond, "1@0/0 2@1/1")
		p.is("2/5")
		c.Pause(true)
		p.after(time.Hour, "")
		p.is("2/5 paused")
		c.Step(1)
		p.after(0, "3@2/3601.5")
		p.is("3/5 paused")
		c.Step(-2)
		p.after(0, "1@0/3601.5")
		c.Step(-9)
		p.after(0, "1@0/3601.5")
		c.Step(2)
		p.after(0, "3@2/3601.5")
		c.Step(9) // stops at the last
		p.after(0, "5@4/3601.5")
		p.is("5/5 paused")
		c.Step(1)
		p.after(0, "")
		p.is("5/5 paused ended")
		c.Pause(false) // no tick follows
		p.after(time.Minute, "")
		c.Step(-1)
		p.after(0, "4@3/3661.5")
		p.is("4/5 paused")
		c.SetSpeed(4)
		c.Pause(false)
		p.after(300*time.Millisecond, "5@4/3661.75")
		p.after(time.Second, "")
		p.is("5/5 paused ended")
		c.Restart()
		c.SetSpeed(0.01) // becomes 0.25, the lowest
		p.after(5*time.Second, "1@0/3662.8 2@1/3666.8")
		p.is("2/5")
		c.SetSpeed(16) // also for the awaited tick
		p.after(0, "3@2/3667.8")
		p.after(70*time.Millisecond, "4@3/3667.8625")
		p.cancel()
		synctest.Wait()
	})
}

func TestControlledDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewControls()
		s := Demo(Options{Controls: c})
		read := func() string {
			var b raw.Batch
			if err := s.Read(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			return string(b.Body)
		}
		first, second, third := read(), read(), read()
		c.Step(-1)
		if read() != second {
			t.Error("a step back is not the tick before")
		}
		c.Restart()
		if read() != first {
			t.Error("the demo does not start over")
		}
		c.Step(2)
		if read() != third || c.Position().Tick != 3 || c.Position().Ticks != 0 {
			t.Errorf("not at the third tick: %+v", c.Position())
		}
	})
}

// TestControlledStamps: a capture with times of its own is stamped with them.
func TestControlledStamps(t *testing.T) {
	c := NewControls()
	s := open(t, "timestamp,gpu_id,power_w\n1772366400,0,1\n1772366407,0,2\n", Options{Controls: c})
	c.Step(2)
	var b raw.Batch
	if err := s.Read(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if !b.At.Equal(start) {
		t.Errorf("the first tick is of %v, want %v", b.At, start)
	}
	if err := s.Read(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if !b.At.Equal(start.Add(7*time.Second)) || !c.Position().At.Equal(b.At) || c.Position().Ticks != 2 {
		t.Errorf("the second tick is of %v, at %+v", b.At, c.Position())
	}
}

package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestUnseenRestart: a gap of up to three minutes is too short for a restart.
func TestUnseenRestart(t *testing.T) {
	for gap, want := range map[time.Duration]bool{3 * time.Minute: false, 3*time.Minute + 1: true} {
		b := newAccounts(t, nil)
		b.devices(gpu1)
		b.read(0, 0, heavy)
		b.read(gap, gap, heavy)
		if got := !b.judge.memory.present[0].restarts.at.IsZero(); got != want {
			t.Errorf("after %v: %t", gap, got)
		}
	}
}

// TestIncidentsToTheInstant: lines of a program within ten seconds are one incident, and the same
// code on two boards within a minute is one job's.
func TestIncidentsToTheInstant(t *testing.T) {
	two := func() (*Judge, *device, *device) {
		j := newJudge(t, nil)
		j.Judge(frame(topology(canonical.Device{GPU: "0", UUID: "GPU-0"}, canonical.Device{GPU: "1", UUID: "GPU-1"}), start, reading{}, reading{}), nil)
		return j, j.memory.present[0], j.memory.present[1]
	}
	for gap, want := range map[time.Duration]int{10*time.Second - 1: 1, 10 * time.Second: 2} {
		j, d, _ := two()
		j.incident(d, j.find(d, 13, start), start)
		j.incident(d, j.find(d, 13, start), start.Add(gap))
		if n := len(j.find(d, 13, start).own.at); n != want {
			t.Errorf("two within %v: %d incidents, want %d", gap, n, want)
		}
	}
	for gap, want := range map[time.Duration]int{time.Minute: 0, time.Minute + 1: 1} {
		j, d, other := two()
		j.incident(d, j.find(d, 13, start), start)
		j.incident(other, j.find(other, 13, start), start.Add(gap))
		if n, m := len(j.find(d, 13, start).own.at), len(j.find(other, 13, start).own.at); n != want || m != want {
			t.Errorf("on two boards within %v: %d and %d incidents, want %d", gap, n, m, want)
		}
	}
}

// TestLostBoardIsFound: by its uuid or, if the source does not report that, by host and index.
func TestLostBoardIsFound(t *testing.T) {
	known := []canonical.Device{{Hostname: "a", GPU: "0", UUID: "GPU-0"}, {Hostname: "a", GPU: "1", UUID: "GPU-1", Instance: "7"}}
	for _, c := range []struct {
		lost  canonical.Device
		known bool
	}{
		{canonical.Device{Hostname: "b", GPU: "5", UUID: "GPU-0"}, true},
		{canonical.Device{Hostname: "a", GPU: "0"}, true},
		{canonical.Device{Hostname: "b", GPU: "0"}, false},
		{canonical.Device{Hostname: "a", GPU: "2"}, false},
		{canonical.Device{Hostname: "a", GPU: "1"}, false}, // an instance is no board
		{canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-9"}, false},
	} {
		if got := len(named([]canonical.Device{c.lost}, known)) == 0; got != c.known {
			t.Errorf("%+v is known: %t", c.lost, got)
		}
	}
	j := newJudge(t, nil)
	lost, stays := canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-0"}, canonical.Device{Hostname: "a", GPU: "1", UUID: "GPU-1"}
	part := lost
	part.Instance = "7" // which leaves first
	j.Judge(frame(topology(lost, stays, part), start), nil)
	j.Judge(frame(topology(lost, stays), start), nil)
	left := topology(stays)
	left.Generation = 2
	left.Absent = []canonical.Device{{Hostname: "a", GPU: "0"}, {Hostname: "b", GPU: "0"}, {Hostname: "a", GPU: "2"}, {Hostname: "a", GPU: "0", UUID: "GPU-8"}}
	j.Judge(frame(left, start.Add(time.Second), reading{}), nil)
	for i, want := range []string{"GPU-1", "GPU-0", "", "", ""} {
		got := ""
		if d := j.memory.board(left, i); d != nil {
			got = d.UUID + d.Instance
		}
		if got != want {
			t.Errorf("device %d of the topology is %q, want %q", i, got, want)
		}
	}
}

package dcgm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// header and row return output of dmon 4.4, whose first column is 11 wide.
func header(columns ...string) string { return line("#Entity", columns) + line("ID", nil) }

func textRow(gpu int, cells ...string) string { return line(fmt.Sprintf("GPU %d", gpu), cells) }

func line(entity string, cells []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s", entity)
	for _, c := range cells {
		fmt.Fprintf(&b, "%-18s", c)
	}
	return b.String() + "\n"
}

// receive runs a receiver of the device or profiling stream on what play writes,
// in a synctest bubble. It returns the ticks as `value…@ms after the start`, and
// the receiver's error.
func receive(t *testing.T, stream int, play func(w net.Conn)) (ticks []string, err error) {
	t.Helper()
	r := &receiver{origin: origin{stream: stream}, period: 100 * time.Millisecond, delivers: func() {}}
	synctest.Test(t, func(*testing.T) {
		ours, theirs := net.Pipe()
		ring := newRing(r.period)
		r.ring = ring
		begun := time.Now()
		var player sync.WaitGroup
		player.Go(func() {
			defer theirs.Close()
			play(theirs)
		})
		done := make(chan struct{})
		go func() { defer close(done); err = r.run(lastingPipe{ours}) }()
		for over := false; !over; {
			select {
			case <-ring.news:
			case <-done:
				over = true
			}
			for tk := ring.next(); tk != nil; tk = ring.next() {
				var says []string
				for _, s := range tk.batch.Samples {
					says = append(says, fmt.Sprintf("%s=%v", Fields[s.Family].Column, s.Value))
				}
				ticks = append(ticks, fmt.Sprintf("%s@%d", strings.Join(says, " "), tk.at.Sub(begun).Milliseconds()))
				ring.recycle(tk)
			}
		}
		ours.Close()
		player.Wait()
	})
	return ticks, err
}

// lastingPipe accepts deadlines even after its writer has closed it, as a kernel
// pipe does and net.Pipe does not.
type lastingPipe struct{ net.Conn }

func (p lastingPipe) SetReadDeadline(at time.Time) error {
	if err := p.Conn.SetReadDeadline(at); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func TestReceiver(t *testing.T) {
	const ms = time.Millisecond
	write := func(w net.Conn, text string) { _, _ = io.WriteString(w, text) }
	two := func(v string) string { return textRow(0, v) + textRow(1, v) }
	eight := func(v string) string { return strings.TrimSpace(strings.Repeat("POWER="+v+" ", 8)) }
	tests := []struct {
		name   string
		stream int
		play   func(w net.Conn)
		ticks  []string
		err    error
	}{
		{"a tick ends with its last row", device, func(w net.Conn) {
			write(w, header("POWER"))
			for i := range 3 {
				time.Sleep(100 * ms)
				write(w, two(fmt.Sprint(i)))
			}
		}, []string{"POWER=0 POWER=0@100", "POWER=1 POWER=1@200", "POWER=2 POWER=2@300"}, io.EOF},

		{"the first tick has no rates", device, func(w net.Conn) {
			write(w, header("POWER", "NBWLT")+textRow(0, "1", "0"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "2", "5"))
			time.Sleep(100 * ms)
		}, []string{"POWER=1@0", "POWER=2 NBWLT=5@100"}, io.EOF},

		{"the first profiling tick is void", profiling, func(w net.Conn) {
			write(w, header("SMACT")+textRow(0, "0.000"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "0.500"))
			time.Sleep(100 * ms)
		}, []string{"SMACT=0.5@100"}, io.EOF},

		{"rows and cells come in pieces", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1")+textRow(1, "2"))
			time.Sleep(100 * ms)
			text := two("777")
			for i := range len(text) {
				write(w, text[i:i+1])
				time.Sleep(ms / 10)
			}
			time.Sleep(100 * ms)
		}, []string{"POWER=1 POWER=2@0", "POWER=777 POWER=777@105"}, io.EOF}, // 58 bytes

		{"two ticks and a header in one piece", device, func(w net.Conn) {
			write(w, header("POWER")+two("1")+two("2")+header("POWER")+two("3"))
			time.Sleep(100 * ms)
		}, []string{"POWER=1 POWER=1@0", "POWER=2 POWER=2@0", "POWER=3 POWER=3@0"}, io.EOF},

		{"rows in any order", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(1, "1")+textRow(0, "0"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "0")+textRow(1, "1"))
			time.Sleep(100 * ms)
			write(w, textRow(1, "1")+textRow(0, "0"))
			time.Sleep(100 * ms)
		}, []string{"POWER=1 POWER=0@0", "POWER=0 POWER=1@100", "POWER=1 POWER=0@200"}, io.EOF},

		{"a row that is missing is waited for until most of the interval is over", device, func(w net.Conn) {
			write(w, header("POWER")+two("1"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "2"))
			time.Sleep(74 * ms)
			write(w, textRow(1, "2"))
			time.Sleep(26 * ms)
			write(w, textRow(0, "3"))
			time.Sleep(76 * ms)
			write(w, textRow(1, "3"))
			time.Sleep(24 * ms)
			write(w, two("4"))
			time.Sleep(100 * ms)
		}, []string{"POWER=1 POWER=1@0", "POWER=2 POWER=2@174", "POWER=3@200", "POWER=3@276", "POWER=4 POWER=4@300"}, io.EOF},

		{"a sample that is printed slowly is one all the same", device, func(w net.Conn) {
			write(w, header("POWER"))
			for i := range 4 {
				for g := range 8 {
					write(w, textRow(g, fmt.Sprint(i)))
					time.Sleep(40 * ms)
				}
				time.Sleep(60 * ms)
			}
		}, []string{eight("0") + "@280", eight("1") + "@660", eight("2") + "@1040", eight("3") + "@1420"}, io.EOF},

		{"and one whose pauses are longer than the period", device, func(w net.Conn) {
			write(w, header("POWER"))
			for i := range 3 {
				for g := range 8 {
					time.Sleep(400 * ms)
					write(w, textRow(g, fmt.Sprint(i)))
				}
				time.Sleep(1200 * ms)
			}
		}, []string{eight("0") + "@3200", eight("1") + "@7600", eight("2") + "@12000"}, io.EOF},

		{"the first sample ends with a silence", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(999 * ms)
			write(w, textRow(1, "1"))
			time.Sleep(1001 * ms)
			write(w, textRow(2, "1"))
			time.Sleep(1001 * ms)
			write(w, textRow(0, "2")+textRow(1, "2")+textRow(2, "2"))
		}, []string{"POWER=1 POWER=1@999", "POWER=1@2000", "POWER=2 POWER=2 POWER=2@3001"}, io.EOF},

		{"a row that no longer comes is no longer expected", device, func(w net.Conn) {
			write(w, header("POWER"))
			for i := range 11 {
				text := two(fmt.Sprint(i))
				if i > 0 {
					text = textRow(0, fmt.Sprint(i))
				}
				write(w, text)
				time.Sleep(100 * ms)
			}
			write(w, textRow(0, "11"))
		}, []string{"POWER=0 POWER=0@0", "POWER=1@100", "POWER=2@200", "POWER=3@300", "POWER=4@400", "POWER=5@500", "POWER=6@600",
			"POWER=7@700", "POWER=8@800", "POWER=9@900", "POWER=10@1000", "POWER=11@1100"}, io.EOF},

		{"the rest of a void sample is void", profiling, func(w net.Conn) {
			write(w, header("SMACT")+textRow(0, "0.000"))
			time.Sleep(1100 * ms)
			write(w, textRow(1, "0.000"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "0.500")+textRow(1, "0.600"))
			time.Sleep(100 * ms)
		}, []string{"SMACT=0.5 SMACT=0.6@1200"}, io.EOF},

		{"what the end cuts short is left out", device, func(w net.Conn) {
			write(w, header("POWER")+two("1"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "2")+textRow(1, "2")[:20])
		}, []string{"POWER=1 POWER=1@0"}, io.EOF},

		{"a line that never ends", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(100 * ms)
			write(w, strings.Repeat("x", 3*lineBuffer)+"\n"+textRow(0, "2"))
		}, nil, errNoise},

		{"no row for ten times what a sample took", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(999 * ms)
			write(w, textRow(0, "2"))
			time.Sleep(time.Hour)
		}, []string{"POWER=1@0", "POWER=2@999"}, errHangs{9995 * ms}},

		{"no row for five seconds", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(100 * ms)
			write(w, textRow(0, "2"))
			time.Sleep(4999 * ms)
			write(w, textRow(0, "3")) // the interval is 1324.75 ms now, a quarter of the way
			time.Sleep(time.Hour)
		}, []string{"POWER=1@0", "POWER=2@100", "POWER=3@5099"}, errHangs{13252500 * time.Microsecond}},

		{"no row after samples that came all at once", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1")+textRow(0, "2")+textRow(0, "3"))
			time.Sleep(time.Hour)
		}, []string{"POWER=1@0", "POWER=2@0", "POWER=3@0"}, errHangs{5005 * ms}},

		{"a child that is very slow is not believed for more than a minute", device, func(w net.Conn) {
			write(w, header("POWER"))
			for i := range 3 {
				write(w, textRow(0, fmt.Sprint(i)))
				time.Sleep(29 * time.Second)
			}
			time.Sleep(time.Hour)
		}, []string{"POWER=0@0", "POWER=1@29000", "POWER=2@58000"}, errHangs{60005 * ms}},

		{"garbage is not a row", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1"))
			for range 5000 {
				time.Sleep(7 * ms)
				write(w, "GPU 0 is lost\n")
			}
		}, []string{"POWER=1@0"}, errHangs{30002 * ms}}, // 4286 × 7 ms

		{"the first row may take its time", device, func(w net.Conn) {
			write(w, header("POWER"))
			time.Sleep(29 * time.Second)
			write(w, textRow(0, "1"))
			time.Sleep(time.Hour)
		}, []string{"POWER=1@29000"}, errHangs{30005 * ms}},

		{"no first row", device, func(w net.Conn) {
			write(w, header("POWER"))
			time.Sleep(time.Hour)
		}, nil, errHangs{30005 * ms}},

		{"a line, and silence", device, func(w net.Conn) { write(w, "hello\n"); time.Sleep(time.Hour) }, nil, errNoise},
		{"no newline", device, func(w net.Conn) { write(w, "Password: "); time.Sleep(time.Hour) }, nil, errNoise},
		{"a comment is not a header", device, func(w net.Conn) { write(w, "# hello\n"); time.Sleep(time.Hour) }, nil, errNoise},
		{"a row after a banner", device, func(w net.Conn) {
			write(w, "hello\n")
			time.Sleep(4900 * ms)
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(time.Hour)
		}, []string{"POWER=1@4900"}, errHangs{30005 * ms}},
		{"a header after a banner", device, func(w net.Conn) { write(w, "hello\n"+header("POWER")); time.Sleep(time.Hour) }, nil, errHangs{30005 * ms}},
		{"noise without end", device, func(w net.Conn) { write(w, strings.Repeat("hello, here\n", 1<<20)) }, nil, errNoise},
		{"noise without end and newline", device, func(w net.Conn) { write(w, strings.Repeat("hello, here", 1<<20)) }, nil, errNoise},
		{"noise after a row", device, func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1")+strings.Repeat("hello, here\n", 1<<20))
		}, nil, errNoise},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ticks, err := receive(t, tt.stream, tt.play)
			if got, want := strings.Join(ticks, "\n"), strings.Join(tt.ticks, "\n"); got != want {
				t.Errorf("ticks\n%s\nwant\n%s", got, want)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("ended with %v, want %v", err, tt.err)
			}
		})
	}
}

// A reader that stalls for five seconds of a stream at 100 ms loses the oldest ticks, counted one
// by one, and the streams continue.
func TestConsumerStalledForFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const samples = 51
		ring := newRing(100 * time.Millisecond)
		var streams sync.WaitGroup
		for stream := range 2 {
			ours, theirs := net.Pipe()
			streams.Go(func() {
				defer theirs.Close()
				_, _ = io.WriteString(theirs, header("SMACT"))
				for n := range samples {
					_, _ = io.WriteString(theirs, textRow(0, fmt.Sprint(n))+textRow(1, fmt.Sprint(n)))
					time.Sleep(100 * time.Millisecond)
				}
			})
			streams.Go(func() {
				r := &receiver{origin: origin{stream: stream}, period: 100 * time.Millisecond, ring: ring, delivers: func() {}}
				if err := r.run(lastingPipe{ours}); !errors.Is(err, io.EOF) {
					t.Errorf("stream %d ended with %v", stream, err)
				}
				ours.Close()
			})
		}
		streams.Wait()
		// The first sample is void, and counted.
		var left [2]int
		for tk := ring.next(); tk != nil; tk = ring.next() {
			left[tk.stream]++
			if last := tk.batch.Samples[1].Value; left[tk.stream] == ringSize/2 && last != samples-1 {
				t.Errorf("the last tick of stream %d is sample %v", tk.stream, last)
			}
		}
		for stream := range 2 {
			const want = samples - 1 - ringSize/2
			c := &ring.counts[stream]
			if ticks, evicted := c.Ticks.Load(), c.Evicted.Load(); ticks != samples || evicted != want || left[stream] != ringSize/2 {
				t.Errorf("stream %d: %d ticks, %d evicted, want %d; %d left", stream, ticks, evicted, want, left[stream])
			}
		}
	})
}

// held delivers its text only after a deadline has passed, as a pipe does if
// the reader slept.
type held struct {
	text     string
	deadline time.Time
	after    time.Duration
	slept    bool
}

func (h *held) SetReadDeadline(d time.Time) error { h.deadline = d; return nil }

func (h *held) Read(p []byte) (int, error) {
	if !h.slept {
		h.slept = true
		time.Sleep(h.after)
	}
	if !time.Now().Before(h.deadline) {
		return 0, errTimeout
	}
	if h.text == "" {
		return 0, io.EOF
	}
	n := copy(p, h.text)
	h.text = h.text[n:]
	return n, nil
}

// errTimeout is the error of an expired deadline.
var errTimeout = func() error {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_ = a.SetReadDeadline(time.Unix(1, 0))
	_, err := a.Read(make([]byte, 1))
	return err
}()

// A receiver that slept, because the machine or the process was suspended, must
// not call its child hanging.
func TestReceiverThatSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := newRing(100 * time.Millisecond)
		r := &receiver{period: 100 * time.Millisecond, ring: ring, delivers: func() {}}
		h := &held{text: header("POWER") + textRow(0, "1") + textRow(0, "2"), after: time.Hour}
		if err := r.run(h); !errors.Is(err, io.EOF) {
			t.Errorf("ended with %v", err)
		}
		if n := ring.counts[0].Ticks.Load(); n != 2 {
			t.Errorf("%d ticks", n)
		}
	})
}

// ticking returns a function that takes a tick of 8 GPUs with 25 fields from
// text to samples, with a header before every 14th. Values differ from tick to
// tick.
func ticking(t testing.TB) func() {
	const gpus, fields = 8, 25
	var all []Field
	var columns []string
	for _, f := range Fields {
		if f.Stream == DeviceStream && len(all) < fields {
			all, columns = append(all, f), append(columns, f.Column)
		}
	}
	rows := make([]string, 7)
	for n := range rows {
		for g := range gpus {
			var cells []string
			for i, f := range all {
				cell := fmt.Sprint(i*1000 + g)
				if f.Float {
					cell = fmt.Sprintf("%d.%03d", i*7+n, i*31)
				}
				cells = append(cells, cell)
			}
			rows[n] += textRow(g, cells...)
		}
	}
	repeated := header(columns...) + rows[0]
	s := New(Options{Period: time.Second, Hostname: "gpu07"})
	s.join.expects = func(int) bool { return false }
	var uuids []string
	for g := range gpus {
		uuids = append(uuids, fmt.Sprintf("GPU-%036d", g))
	}
	s.adopt(viewOf(boardsOf(uuids...)))
	r := &receiver{origin: origin{epoch: 1}, period: time.Second, ring: s.ring, delivers: func() {}, output: output{buf: make([]byte, lineBuffer)}}
	r.parser.Names = r
	r.open()
	b := &raw.Batch{}
	n := 0
	tick := func() {
		text := rows[n%len(rows)]
		if n%14 == 0 {
			text = repeated
		}
		n++
		r.scan(copy(r.output.buf, text), time.Now())
		b.Reset()
		if !s.next(b) {
			if n > 1 {
				t.Fatalf("no reading %d", n)
			}
			return
		}
		if n > 4 && len(b.Samples) != gpus*fields { // the first has no rates
			t.Fatalf("%d samples", len(b.Samples))
		}
	}
	for range 4 {
		tick()
	}
	return tick
}

func TestSteadyTickAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, ticking(t)); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

func BenchmarkTick8x25(b *testing.B) {
	tick := ticking(b)
	b.ReportAllocs()
	for b.Loop() {
		tick()
	}
}

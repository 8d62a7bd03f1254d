package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// nodePage writes a proxy's page of GPUs at an instant: each works in waves at its own pace.
func nodePage(w io.Writer, gpus int, period time.Duration, at time.Time) {
	fmt.Fprintf(w, `kpulse_source_up{source="s",backend="dcgm"} 1
kpulse_source_period_seconds{source="s",backend="dcgm"} %g
kpulse_source_last_read_timestamp_seconds{source="s",backend="dcgm"} %.3f
`, period.Seconds(), float64(at.UnixMilli())/1e3)
	for i := range gpus {
		wave := 0.5 + 0.45*math.Sin(float64(at.UnixMilli())/1e3/float64(5+i%7)+float64(i))
		labels := fmt.Sprintf(`hostname="dgx-%02d",gpu="%d",uuid="GPU-%04d"`, i/8, i%8, i)
		fmt.Fprintf(w, "kpulse_gpu_info{%s,model=\"NVIDIA H200\"} 1\nkpulse_gpu_real_utilization_ratio{%s} %g\n", labels, labels, wave)
		fmt.Fprintf(w, "kpulse_gpu_workload_class{%s,class=\"%s\",bottleneck=\"compute\"} 1\nkpulse_gpu_health{%s,state=\"ok\"} 1\n", labels, canonical.Classes[i%4].Name, labels)
		for f := range canonical.NumFields {
			info := &canonical.Fields[f]
			more := ""
			if info.Labels != "" {
				more = "," + info.Labels
			}
			fmt.Fprintf(w, "%s%s{%s%s} %g\n", canonical.Prefix, info.Name, labels, more, wave*map[canonical.Unit]float64{canonical.Ratio: 1, canonical.Watts: 600, canonical.Celsius: 80, canonical.Bytes: 1e11, canonical.BytesPerSecond: 1e10, canonical.Hertz: 2e9}[info.Unit])
		}
	}
}

// dashboardHour is a program: the terminal. Once it has read 64 GPUs for an hour, it writes the
// file that its argument names.
func dashboardHour() {
	const ticks, period = 3600, time.Second
	p := &hour{begin: time.Now().Add(-ticks * period), ticks: ticks, done: os.Args[1]}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { nodePage(w, 64, period, p.State().At) })
	err := tui.Run(context.Background(), os.Stdin, os.Stdout, tui.Options{
		Targets: []client.Target{{URL: client.InProcess, Client: client.ForHandler(page), Playback: p, Lead: ticks}},
		Environ: os.Environ(),
	})
	if err != nil {
		panic(err)
	}
}

// hour is a playback whose ticks jitter like real ones.
type hour struct {
	begin time.Time
	ticks int
	done  string

	mu    sync.Mutex
	state client.PlaybackState
}

// Step implements client.Playback.
func (h *hour) Step(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Tick += n
	h.state.Speed = 1
	early := time.Duration(h.state.Tick*7919%800) * time.Millisecond
	h.state.At = h.begin.Add(time.Duration(h.state.Tick)*time.Second - early).Truncate(time.Millisecond)
}

// Pause implements client.Playback: a lead begins with a pause, and ends with its end.
func (h *hour) Pause(paused bool) {
	if paused {
		h.Step(1)
		return
	}
	_ = os.WriteFile(h.done, nil, 0o600)
}

// SetSpeed implements client.Playback.
func (h *hour) SetSpeed(float64) {}

// Restart implements client.Playback.
func (h *hour) Restart() {}

// State implements client.Playback.
func (h *hour) State() client.PlaybackState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

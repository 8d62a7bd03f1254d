package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sync/atomic"
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
	begin, lead := time.Now().Add(-ticks*period), make(chan struct{})
	var tick atomic.Int64
	go func() {
		for range lead {
			tick.Add(1)
		}
		_ = os.WriteFile(os.Args[1], nil, 0o600)
	}()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := tick.Load()
		early := time.Duration(n*7919%800) * time.Millisecond // ticks jitter like real ones
		nodePage(w, 64, period, begin.Add(time.Duration(n)*time.Second-early).Truncate(time.Millisecond))
	})
	err := tui.Run(context.Background(), tui.Options{
		Targets: []client.Target{{URL: client.InProcess, Client: client.ForHandler(page), Lead: ticks, Ticks: lead}},
	})
	if err != nil {
		panic(err)
	}
}

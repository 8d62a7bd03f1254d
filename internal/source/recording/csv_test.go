package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// pagesOf returns the pages of all ticks and the times between them.
func pagesOf(t testing.TB, path string, opts Options) (pages []string, gaps []time.Duration) {
	t.Helper()
	s, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b raw.Batch
	var last time.Time
	for {
		err := s.Read(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			return pages, gaps
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Skipped > 0 || len(b.Samples) == 0 {
			t.Errorf("%d lines were skipped, %d samples:\n%s", b.Skipped, len(b.Samples), b.Body)
		}
		pages = append(pages, string(b.Body))
		if !last.IsZero() {
			gaps = append(gaps, b.At.Sub(last))
		}
		last = b.At
	}
}

const twoTicks = `timestamp,gpu_id,model,gpu_util_pct,mem_used_mib,real_util_pct,status,sm_active_pct,nvlink_gbps,pcie_replay_rate_s,energy_j
100.00,0,RTX6000,97.00,1536.0000,65.89,"busy, low SM use",12.35,202.0013,,2307328912.3
100.00,1,,,,,unknown,,,,
102.50,0,RTX6000,98.00,1536.5000,65.89,idle,12.30,0.0000,0.40,2307328913.0
`

// TestCSVPlaysReadings: readings have the units of an exporter, empty cells give
// none, and the rate of replays becomes a counter that begins one tick earlier.
// Derived columns are not played.
func TestCSVPlaysReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages, gaps := pagesOf(t, fileOf(t, twoTicks), Options{})
		want := []string{
			`DCGM_FI_PROF_SM_ACTIVE{gpu="0",modelName="RTX6000",entity="GPU 0"} 0.1235
DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="RTX6000",entity="GPU 0"} 97
DCGM_FI_DEV_FB_USED{gpu="0",modelName="RTX6000",entity="GPU 0"} 1536
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{gpu="0",modelName="RTX6000",entity="GPU 0"} 197266.89453125
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",modelName="RTX6000",entity="GPU 0"} 0
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",modelName="RTX6000",entity="GPU 0"} 2307328912300
`,
			`DCGM_FI_PROF_SM_ACTIVE{gpu="0",modelName="RTX6000",entity="GPU 0"} 0.123
DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="RTX6000",entity="GPU 0"} 98
DCGM_FI_DEV_FB_USED{gpu="0",modelName="RTX6000",entity="GPU 0"} 1536.5
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{gpu="0",modelName="RTX6000",entity="GPU 0"} 0
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",modelName="RTX6000",entity="GPU 0"} 1
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",modelName="RTX6000",entity="GPU 0"} 2307328913000
`,
		}
		if fmt.Sprint(pages) != fmt.Sprint(want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(pages, "\n"), strings.Join(want, "\n"))
		}
		if len(gaps) != 1 || gaps[0] != 2500*time.Millisecond {
			t.Errorf("gaps %v, want the 2.5 s of the timestamps", gaps)
		}
	})
}

// TestCSVTicks: which rows are one tick, and how far apart ticks are.
func TestCSVTicks(t *testing.T) {
	for _, c := range []struct {
		name, text string
		opts       Options
		ticks      int
		gaps       string
	}{
		{"a timestamp is a tick", "timestamp,gpu_id,power_w\n1,0,1\n1,1,1\n2,0,2\n2,1,2\n5,1,3\n", Options{}, 3, "[1s 3s]"},
		{"two ticks of one time, of which the first was late", "timestamp,gpu_id,power_w\n1,0,1\n1,1,1\n1,0,2\n1,1,2\n3,0,3\n", Options{}, 3, "[1s 1s]"},
		{"three, and two at the end", "timestamp,gpu_id,power_w\n1,0,1\n1,0,2\n1,0,3\n7,0,4\n7,0,5\n", Options{}, 5, "[1.5s 1.5s 3s 1.5s]"},
		{"the period that was asked for", "timestamp,gpu_id,power_w\n1,0,1\n2,0,2\n5,0,3\n", Options{Period: 100 * time.Millisecond}, 3, "[100ms 100ms]"},
		{"a device that comes again", "gpu_id,power_w\n0,1\n1,1\n0,2\n0,3\n", Options{}, 3, "[1s 1s]"},
		{"instances are devices", "gpu_id,power_w\n7:1,1\n7:2,1\n7,2\n7:1,3\n", Options{}, 2, "[1s]"},
		{"a clock that was set back, and days", "timestamp,gpu_id,power_w\n10,0,1\n12,0,1\n3,0,1\n5,0,1\n900000,0,1\n", Options{}, 5, "[2s 2s 2s 1h0m0s]"},
		{"joined files", "timestamp,gpu_id,power_w\n1,0,1\ntimestamp,gpu_id,power_w\n2,0,1\n", Options{}, 2, "[1s]"},
		{"another system's line ends", "timestamp,gpu_id,power_w\r\n1,0,1\r\n2,0,1\r\n", Options{}, 2, "[1s]"},
		{"an unknown column", "gpu_id,power_w,weather\n0,1,rain\n", Options{}, 1, "[]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			pages, gaps := pagesOf(t, fileOf(t, c.text), c.opts)
			if len(pages) != c.ticks || fmt.Sprint(gaps) != c.gaps {
				t.Errorf("%s: %d ticks, gaps %v, want %d and %s", c.name, len(pages), gaps, c.ticks, c.gaps)
			}
		})
	}
}

// TestCSVOfBoards: a board that was not read itself is listed through its instances, as an
// exporter does.
func TestCSVOfBoards(t *testing.T) {
	const text = `gpu_id,status,power_w,sm_active_pct,hostname,uuid,mig_instance,mig_profile,model_name
0,idle,50,,n,GPU-a,,,"NVIDIA ""A"", 80"
7,,162.5,,n,GPU-b,,,H
7:1,memory-bound,,9.00,n,GPU-b,1,3g.40gb,H
7:2,idle,,1.00,n,GPU-b,2,3g.40gb,H
`
	synctest.Test(t, func(t *testing.T) {
		const first = `{gpu="7",UUID="GPU-b",Hostname="n",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",modelName="H"}`
		want := "DCGM_FI_PROF_SM_ACTIVE" + first + " 0.09\n" +
			"DCGM_FI_PROF_SM_ACTIVE" + strings.Replace(first, `ID="1"`, `ID="2"`, 1) + " 0.01\n" +
			`DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",Hostname="n",modelName="NVIDIA \"A\", 80"} 50` + "\n" +
			"DCGM_FI_DEV_POWER_USAGE" + first + " 162.5\n"
		if pages, _ := pagesOf(t, fileOf(t, text), Options{}); pages[0] != want {
			t.Errorf("got\n%swant\n%s", pages[0], want)
		}
	})
}

// TestCSVLoops: the counter of replays keeps rising.
func TestCSVLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(fileOf(t, twoTicks), Options{Loop: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var counts []string
		var b raw.Batch
		for range 6 {
			if err := s.Read(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(b.Body), "REPLAY_COUNTER")
			_, after, _ = strings.Cut(after, "} ")
			count, _, _ := strings.Cut(after, "\n")
			counts = append(counts, count)
		}
		if got := strings.Join(counts, " "); got != "0 1 1 2 2 3" {
			t.Errorf("counters %s", got)
		}
	})
}

func TestCSVThatWasCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		pages, _ := pagesOf(t, fileOf(t, "gpu_id,power_w\n0,412.5\n0,41"), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if len(pages) != 1 || !strings.Contains(log.String(), "line 3 is an incomplete row") {
			t.Errorf("%d ticks, log %s", len(pages), &log)
		}
	})
}

func TestCSVThatIsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"gpu_id,power_w,model\n0,1,\n\xef,0,\n", "line 1: the text is not UTF-8"},
		{"timestamp,gpu_id,real_util_pct\n1,0,3\n", "line 1: no column of the header is a reading"},
		{"gpu_id,power_w\n", "line 1: a header but no complete row"},
		{"gpu_id,power_w\n0,1", "line 1: a header but no complete row"},
		{"gpu_id,power_w", "line 1: the text ends within its header"},
		{"gpu_id,power_w\n0,12\n0,12 W\n", `line 3: power_w is "12 W", which is not a number`},
		{"gpu_id,power_w\n0,NaN\n", `line 2: power_w is "NaN"`},
		{"gpu_id,power_w\n0,0x10\n", `line 2: power_w is "0x10"`},
		{"gpu_id,power_w\n0,1e999\n", `line 2: power_w is "1e999"`},
		{"gpu_id,power_w\n0\n", "line 2: wrong number of fields"},
		{"gpu_id,power_w\n0,\"1\n", "line 2: extraneous or missing"},
		{"gpu_id,power_w,0000\n\"\n", "line 2: extraneous or missing"}, // the error names no field
		{"gpu_id,power_w\n,1\n", "line 2: gpu_id is empty"},
		{"timestamp,gpu_id,power_w\n,0,1\n", `line 2: timestamp is "", which is not a time`},
		{"timestamp,gpu_id,power_w\n1e300,0,1\n", `line 2: timestamp is "1e300", which is not a time`},
	} {
		_, err := Open(fileOf(t, c.text), Options{})
		e, ok := errors.AsType[*source.Error](err)
		if !ok || !strings.Contains(e.Cause, c.want) || e.Remedy == "" {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	// These are not headers of our CSV.
	for _, header := range []string{"a,b,c", "timestamp,real_util_pct,power_w", "index, power.draw [W]", "GPU 0,power_w"} {
		if isCSV([]byte(header)) {
			t.Errorf("%q is a header", header)
		}
	}
}

// TestCSVReadingsAreDistinct: no column occurs twice, and factors leave no rounding
// errors.
func TestCSVReadingsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range csvReadings() {
		if seen[c.column] {
			t.Errorf("%s occurs twice", c.column)
		}
		seen[c.column] = true
	}
	percent := csvReading{times: 1, over: 100}
	for n := range 10001 {
		cell := fmt.Sprintf("%d.%02d", n/100, n%100)
		v, _ := strconv.ParseFloat(cell, 64)
		want := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%04d", n/10000, n%10000), "0"), ".")
		if got, _ := strconv.ParseFloat(string(percent.append(nil, v)), 64); strconv.FormatFloat(got, 'f', -1, 64) != want {
			t.Fatalf("%s%% is %v, want %s", cell, got, want)
		}
	}
}

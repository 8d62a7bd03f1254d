//go:build cgo && linux

package nvml

import (
	"context"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// log collects log lines.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns the number of lines that contain all words.
func (l *log) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for line := range strings.Lines(l.text.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}

// reader reads a machine.
type reader struct {
	*Source
	t   *testing.T
	b   raw.Batch
	log log
}

func newReader(t *testing.T, m *machine, set func(*Options)) *reader {
	t.Helper()
	r := &reader{t: t}
	opts := Options{Logger: slog.New(slog.NewTextHandler(&r.log, nil))}
	if set != nil {
		set(&opts)
	}
	r.Source = newSource(opts, m)
	return r
}

// read reads once, and returns the values by device and family name: "0
// DCGM_FI_DEV_GPU_TEMP", and for instances "0/7 DCGM_FI_…".
func (r *reader) read() map[string]string {
	r.t.Helper()
	if err := r.Read(context.Background(), &r.b); err != nil {
		r.t.Fatal(err)
	}
	return values(r.t, r.b.AppendAll(nil))
}

func values(t *testing.T, body []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		family, rest, _ := strings.Cut(line, "{")
		labels, value, ok := strings.Cut(rest, "} ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		key := label(labels, "gpu")
		if id := label(labels, "GPU_I_ID"); id != "" {
			key += "/" + id
		}
		all[key+" "+family] = strings.TrimSpace(value)
	}
	return all
}

func label(labels, name string) string {
	for l := range strings.SplitSeq(labels, ",") {
		if n, value, _ := strings.Cut(l, "="); n == name {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// has reports whether a device has a row.
func has(all map[string]string, device string) bool {
	for key := range all {
		if strings.HasPrefix(key, device+" ") && !isLost(all, device) {
			return true
		}
	}
	return false
}

// isLost reports whether a device is marked as lost; it then has no readings.
func isLost(all map[string]string, device string) bool { return all[device+" "+dcgm.Lost] == "1" }

// silent returns the indices of the boards that are marked as lost although nobody says that they are.
func (r *reader) silent() (gpus string) {
	for _, s := range r.b.Samples {
		if block := r.b.Dict.Block(s.Labels); r.b.Dict.Family(s.Family).Name == dcgm.Lost && label(strings.Trim(block, "{}"), "silent") == "true" {
			gpus += label(strings.Trim(block, "{}"), "gpu")
		}
	}
	return gpus
}

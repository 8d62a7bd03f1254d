package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"
)

// TestServesIsOfEachSource: rules see a readable source beside an unreadable one.
func TestServesIsOfEachSource(t *testing.T) {
	dir := t.TempDir()
	missing, good := filepath.Join(dir, "missing.prom"), filepath.Join(dir, "good.prom")
	writeFile(t, good, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 40\n")
	p, err := assemble(configured(t, "sources: [{source: "+missing+"}, {source: "+good+"}]", nil), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.run(ctx)
	}()
	defer func() { end(); <-ended }()
	for until := time.Now().Add(time.Minute); !p.serves(good) && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	if !p.serves(good) || p.serves(missing) || p.serves("another") {
		t.Errorf("serves %v, %v, %v; want the good one alone", p.serves(good), p.serves(missing), p.serves("another"))
	}
}

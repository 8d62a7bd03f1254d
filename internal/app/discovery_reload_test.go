package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubetest"
)

// TestReloadWhileExportersComeAndGo: exporters found during reloads have the settings of the
// latest one.
func TestReloadWhileExportersComeAndGo(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\n")
	}))
	defer exporter.Close()
	address := netip.MustParseAddrPort(exporter.Listener.Addr().String())
	cluster := kubetest.New(t)
	put := func(name string) {
		cluster.Put(kubetest.Pod{Namespace: "gpu", Name: name, Node: name, IP: address.Addr().String(),
			PortName: "metrics", Port: int(address.Port()), Labels: map[string]string{"app": "nvidia-dcgm-exporter"}})
	}
	s, err := assemble(configured(t, "", nil, "--kube.discover=app=nvidia-dcgm-exporter", "--kube.config="+cluster.Kubeconfig(t)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	const exporters = 10
	for i := range exporters {
		put(fmt.Sprintf("n%d", i))
		if err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); len(s.readers.all()) < exporters && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	var names []string
	for _, r := range s.readers.all() {
		names = append(names, r.pipeline.Name())
	}
	if got, want := strings.Join(names, " "), "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9"; got != want {
		t.Errorf("reads %s, want %s", got, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

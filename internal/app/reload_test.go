package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// reloadable returns a service that plays the demo, and a function that rewrites its config file.
func reloadable(t *testing.T, logger *slog.Logger, file string) (s *service, write func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	write = func(file string) {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	s, err := assemble(configured(t, "", nil, "--backend=replay", "--config.file="+path), logger)
	if err != nil {
		t.Fatal(err)
	}
	return s, write
}

// gauge returns the value of the only series with a name.
func gauge(t *testing.T, name string, of ...metric.Collector) float64 {
	t.Helper()
	registry := metric.NewRegistry()
	registry.MustRegister(of...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// TestReloadIsLoggedBeforeItIsCounted: when an alert fires, the reason is already in the log.
func TestReloadIsLoggedBeforeItIsCounted(t *testing.T) {
	var log bytes.Buffer
	var s *service
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey && s != nil {
			a.Value = slog.Float64Value(gauge(t, "kpulse_proxy_config_last_reload_successful", s.reloaded))
		}
		return a
	}}))
	s, write := reloadable(t, logger, "preset: ai\n")
	write("presett: ai\n")
	if err := s.reload(); err == nil {
		t.Error("an invalid file was applied")
	}
	write("preset: hpc\n")
	if err := s.reload(); err != nil {
		t.Error(err)
	}
	first, second, _ := strings.Cut(log.String(), "\n")
	if !strings.Contains(first, "level=ERROR msg=1 ") || !strings.Contains(second, "level=INFO msg=0 ") {
		t.Errorf("the reload was counted before it was logged:\n%s", &log)
	}
}

// memory stands for the memory of a reading, which is not reused here.
type memory struct{}

func (memory) Release() {}

// TestReloadKeepsWhatIsStillSelected: a reload that removes rules and lowers max_samples does not
// drop samples of the remaining rules.
func TestReloadKeepsWhatIsStillSelected(t *testing.T) {
	dir := t.TempDir()
	const file = "groups:\n- name: g\n  interval: 1w\n  rules:\n  - {record: 'r:a', expr: 'count_over_time(a[1m])'}\n"
	few, many := filepath.Join(dir, "few.yml"), filepath.Join(dir, "many.yml")
	for path, text := range map[string]string{few: file, many: file + "  - {record: 'r:b', expr: 'count_over_time(b[1m])'}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, write := reloadable(t, slog.New(slog.DiscardHandler), "rules: {files: ["+many+"]}\n")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.rules.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	kept := func() float64 { return gauge(t, "kpulse_proxy_rule_store_samples", s.rules) }
	until := func(done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v samples are kept", kept())
			}
		}
	}
	const readings = 20
	source := s.readers.all()[0].pipeline.Name() // rules forget sources that are no longer read
	begin := time.Now().Add(-readings * time.Second)
	for i := range readings {
		snapshot := &canonical.Snapshot{Valid: [][]byte{[]byte("a 1\nb 1\n")}, Judgement: &canonical.Judgement{}, Source: canonical.Source{Name: source, At: begin.Add(time.Duration(i) * time.Second)}}
		until(func() bool { return s.rules.Observe(snapshot, memory{}) })
	}
	until(func() bool { return kept() == 2*readings })
	write("rules: {files: [" + few + "], max_samples: 20}\n")
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if got := kept(); got != readings {
		t.Errorf("%v samples of a are kept, want all %d", got, readings)
	}
}

// TestWithoutRulesNothingOfThemIsThere: there is no engine, and the pipeline has no observer.
func TestWithoutRulesNothingOfThemIsThere(t *testing.T) {
	opts, err := parse([]string{"--backend=replay"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s, err := assemble(opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if s.rules != nil || s.observer() != nil {
		t.Errorf("there are %v and %v", s.rules, s.observer())
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/slow"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// TestParityOfBothForms: from a capture, the rules record what the program serves in the full
// form. The lean form has only the members that hold, and omits the action none.
func TestParityOfBothForms(t *testing.T) {
	slow.Test(t, "hours of readings, judged by the rules and by the program")
	files, err := filepath.Glob("../../testdata/captures/*.prom")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures (%v)", len(files), err)
	}
	left := map[string]int{} // out of the lean form, by family
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body = accepted(body)
			s := newServer(t, shipped(t))
			s.scrape("10.0.0.1:9400", start, body)
			s.evaluate(start)
			full := s.concluded(start)
			lean := maps.Clone(full)
			maps.DeleteFunc(lean, func(id string, v float64) bool {
				name, labels, _ := strings.Cut(id, " ")
				holdsNot := v == 0 && slices.Contains([]string{"kpulse_gpu_workload_class", "kpulse_gpu_health", "kpulse_gpu_health_condition"}, name)
				if holdsNot = holdsNot || strings.Contains(labels, "action=none "); holdsNot {
					left[name]++
				}
				return holdsNot
			})
			for form, twin := range map[string]map[string]float64{"full": full, "lean": lean} {
				if list := differences(twin, served(t, body, expose.Form{Full: form == "full"})); len(list) > 0 {
					slices.Sort(list)
					t.Errorf("%s: of %d series %d differ:\n%s", form, len(twin), len(list), strings.Join(list, "\n"))
				}
			}
		})
	}
	if t.Logf("left out: %v", left); len(left) != 4 || slices.Min(slices.Collect(maps.Values(left))) < 10 {
		t.Error("the captures hardly distinguish the forms")
	}
}

// served returns the series of names that the program serves for a body.
func served(t *testing.T, body []byte, form expose.Form) map[string]float64 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.prom")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		src, err := exporter.New(file, exporter.Options{MaxBody: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		translator, err := translate.New(translate.Options{FallbackHost: "10.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		judge, err := compute.New(inRules())
		if err != nil {
			t.Fatal(err)
		}
		pipe := pipeline.New(pipeline.Options{Source: src, Translator: translator, Judge: judge, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = pipe.Run(ctx) }()
		snap, release, err := pipe.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := expose.NewWriter(form).Write(&page, snap); err != nil {
			t.Fatal(err)
		}
		release()
		cancel()
		synctest.Wait()
	})
	series := map[string]float64{}
	for p := textparse.NewPromParser(page.Bytes(), labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return series
		}
		if err != nil {
			t.Fatal(err)
		}
		var l labels.Labels
		if entry != textparse.EntrySeries {
			continue
		}
		p.Labels(&l)
		if name := l.Get(model.MetricNameLabel); slices.Contains(names, name) && l.Get("uuid") != "" { // the rules omit others
			_, _, v := p.Series()
			series[identify(name, l)] = v
		}
	}
}

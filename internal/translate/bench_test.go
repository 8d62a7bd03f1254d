package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

func BenchmarkTranslate(b *testing.B) {
	for _, size := range []struct{ entities, families, pods int }{
		{8, 60, 0}, {8, 60, 1}, {8, 60, 10}, {112, 60, 0}, {112, 60, 1}, {1024, 60, 0}, {1024, 60, 1},
	} {
		b.Run(fmt.Sprintf("%dx%d/pods=%d", size.entities, size.families, size.pods), func(b *testing.B) {
			r := translated(b, Options{}, withPods(rawtest.Body(size.entities, size.families, 1), size.pods))
			b.ReportAllocs()
			for b.Loop() {
				r.tr.Translate(&r.frame, &r.batch, &r.report)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(r.batch.Samples)), "ns/sample")
		})
	}
}

// BenchmarkRender renders a reading of 4.8 in the words of 4.9, and writes the rendition.
func BenchmarkRender(b *testing.B) {
	for _, entities := range []int{8, 112, 1024} {
		r := translated(b, Options{Compat: []Version{V49}}, string(rawtest.Body(entities, 60, 1)))
		var rendition Rendition
		render := func() { r.tr.Render(&rendition, &r.frame, &r.batch) }
		var text []byte
		write := func() {
			text = text[:0]
			for family := range rendition.Len() {
				text = rendition.AppendFamily(text, family, true, func(int) bool { return true })
			}
		}
		for name, f := range map[string]func(){"render": render, "write": write} {
			b.Run(fmt.Sprintf("%dx60/%s", entities, name), func(b *testing.B) {
				render()
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rendition.series)), "ns/value")
			})
		}
	}
}

// BenchmarkChurn translates readings that differ from the previous one in one pod of one device.
func BenchmarkChurn(b *testing.B) {
	for _, entities := range []int{8, 112, 1024} {
		b.Run(fmt.Sprintf("%dx60", entities), func(b *testing.B) {
			body := withPods(rawtest.Body(entities, 60, 1), 1)
			r := newReader(b, Options{})
			r.read(body)
			one, other := r.batch, r.batch
			r.batch.Samples = nil
			r.read(strings.ReplaceAll(body, `pod="pod-0-0"`, `pod="other"`))
			other.Samples = r.batch.Samples
			b.ReportAllocs()
			for b.Loop() {
				r.tr.Translate(&r.frame, &one, &r.report)
				r.tr.Translate(&r.frame, &other, &r.report)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/reading")
		})
	}
}

// withPods writes each series of an exposition as dcgm-exporter does if that many pods share
// each device: one line for each pod. With 0 pods the exposition is unchanged.
func withPods(body []byte, pods int) string {
	if pods == 0 {
		return string(body)
	}
	var out strings.Builder
	device := 0
	for line := range strings.Lines(string(body)) {
		series, value, ok := strings.Cut(line, "} ")
		if line[0] == '#' || !ok {
			device = 0
			out.WriteString(line)
			continue
		}
		for pod := range pods {
			fmt.Fprintf(&out, `%s,container="main",namespace="team",pod="pod-%d-%d"} %s`, series, device, pod, value)
		}
		device++
	}
	return out.String()
}

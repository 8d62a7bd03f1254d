package e2e

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// sixty returns a page of 60 MiB: of 300 families of a thousand series each, as of an exporter of as many devices, or of
// lines with a label block each.
func sixty(distinct bool) exporterAnswer {
	page := sync.OnceValue(func() string {
		var b strings.Builder
		b.WriteString(reading(during))
		for n := 0; b.Len() < 60<<20; n++ {
			of := n % 1000
			if distinct {
				of = n
			}
			fmt.Fprintf(&b, "DCGM_FI_X_%d{gpu=\"%d\",UUID=\"GPU-%s-%d\",Hostname=\"a-host\"} %d\n", n/1000%300, of, strings.Repeat("0", 120), of, n)
		}
		return b.String()
	})
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page()) }
}

// ownBoard is the reading of a source's own board.
func ownBoard(r *http.Request) string {
	return boardSamples("0", "GPU-1"+strings.TrimPrefix(r.URL.Path, "/metrics/0"), during)
}

// small returns a page of 900 KiB for each source, of its board and of 30 long label sets: many short ones, or boards, would stay.
func small() exporterAnswer {
	page := sync.OnceValue(func() string {
		var b strings.Builder
		for n := 0; b.Len() < 900<<10; n++ {
			fmt.Fprintf(&b, "DCGM_FI_X_%d{nvlink=\"%d\",port=\"@-%[2]d\",x=\"%s\"} %[1]d\n", n/30, n%30, strings.Repeat("x", 900))
		}
		return b.String()
	})
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, ownBoard(r))
		_, _ = strings.NewReplacer("@", strings.TrimPrefix(r.URL.Path, "/metrics/")).WriteString(w, page())
	}
}

// several is a config with n sources, all of one exporter.
func several(n int) string {
	text := "sources:\n"
	for n := range n {
		text += "- {source: 'URL/" + itoa(n) + "', poll: 0, node_name: n}\n"
	}
	return text
}

// memory returns a kind of memory of the program, in bytes: VmHWM is the most that it has had, VmRSS what it has.
func (w *world) memory(kind string) int {
	w.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.child.Cmd.Process.Pid))
	m := regexp.MustCompile(kind + `:\s+(\d+) kB`).FindSubmatch(text)
	if err != nil || m == nil {
		w.Fatal("the memory is not known: ", err)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n << 10
}

// raced reports whether a program has the race detector, which takes several times the memory.
func raced(binary string) bool {
	info, err := buildinfo.ReadFile(binary)
	return err == nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// memoryFaults are pages that do not fit.
func memoryFaults() []fault {
	const limit = 256 << 20
	row := func(does string, page exporterAnswer, sources, least, clients int) fault {
		return fault{does: does, flags: []string{"--memory.limit=256MiB", "--source.timeout=4m"}, config: several(sources), crowded: true, seen: seen{says: []string{temperature(during)}}, begin: func(w *world) {
			w.Helper()
			defer w.exporter.does(func(rw http.ResponseWriter, r *http.Request) { // the series of each source are its own
				_, _ = io.WriteString(rw, ownBoard(r))
			})
			if w.scraped > 0 { // once: label sets and families stay in caches
				return
			}
			w.exporter.does(page)
			served := 0
			for range 2 {
				var all sync.WaitGroup
				for range clients {
					all.Go(func() {
						status, body, err := w.child.Get("/metrics?series=full", "Accept-Encoding", "gzip", "X-Prometheus-Scrape-Timeout-Seconds", "100")
						if err != nil || status != http.StatusOK && status != http.StatusBadGateway && status != http.StatusServiceUnavailable {
							w.Errorf("a scrape answers %d, %v: %.300s", status, err, body)
						}
						if status != http.StatusOK && !strings.Contains(body, "--memory.limit") {
							w.Errorf("%d does not say what to do: %.300s", status, body)
						}
					})
				}
				all.Wait()
				_, page := w.get("/")
				w.have("the landing page", page, "", "its page does not fit into the memory that the other pages and answers leave, of 256MiB", "raise --memory.limit")
				served = strings.Count(page, "● up")
			}
			if served < least {
				w.Errorf("%d sources are read, want at least %d", served, least)
			}
			if peak := w.memory("VmHWM"); peak > limit && !raced(os.Getenv("KPULSE_BINARY")) {
				w.Errorf("the program has taken %d MiB, want at most %d", peak>>20, limit>>20)
			} else {
				w.Logf("%d sources are read, and the program has taken %d MiB", served, peak>>20)
			}
		}}
	}
	return []fault{
		row("fifteen exporters serve 60 MiB each", sixty(false), 15, 1, 2),
		row("fifteen exporters serve 60 MiB of different series each", sixty(true), 15, 0, 2),
		row("three hundred exporters serve 900 KiB each", small(), 300, 30, 1), // of two, one may keep readings in which the other finds no room
	}
}

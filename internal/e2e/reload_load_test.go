package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestReloadsDropNoScrape: 8 scrapers keep scraping during 100 reloads of config file and rules, by
// SIGHUP and over HTTP; every third file is refused. Each scrape gets a complete body.
func TestReloadsDropNoScrape(t *testing.T) {
	t.Parallel()
	up := startUpstream(func() ([]byte, error) { return []byte(oneGPU), nil })
	defer up.stop()
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "config.yml"), filepath.Join(dir, "rules.yml")
	writeFile(t, file, "preset: ai\n")
	writeFile(t, rules, "groups: [{name: g, interval: 1s, rules: [{record: my_devices, expr: 'count(kpulse_gpu_present)'}]}]\n")
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--config.file="+file, "--rules.file="+rules, "--web.enable-lifecycle")
	awaitPage(t, c, "/metrics", http.StatusOK, "\nmy_devices ")

	var scrapes, reloaded, refused atomic.Int64
	done := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 8 {
		scrapers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := scrapeWhole(c.URL + "/metrics"); err != nil {
					t.Errorf("after %d scrapes: %v", scrapes.Load(), err)
					return
				}
				scrapes.Add(1)
			}
		})
	}
	configs := []string{"preset: hpc\nhealth: {pcie_replay: off}\n", "preset: ai\nthresholds: {idle_engine: 0.1}\n", "preset: nonsense\n"}
	for n := range 100 {
		writeFile(t, file, configs[n%len(configs)])
		if n%2 == 0 {
			if err := c.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			continue
		}
		res, err := http.Post(c.URL+"/-/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		switch res.StatusCode {
		case http.StatusOK:
			reloaded.Add(1)
		case http.StatusInternalServerError:
			refused.Add(1)
		default:
			t.Errorf("a reload is answered with %s", res.Status)
		}
	}
	before := scrapes.Load()
	awaitTrue(t, "scrapes go on", func() bool { return t.Failed() || scrapes.Load() >= before+8 })
	close(done)
	scrapers.Wait()
	t.Logf("%d scrapes, %d reloads over HTTP, %d refused", scrapes.Load(), reloaded.Load(), refused.Load())
	if reloaded.Load() == 0 || refused.Load() == 0 || !strings.Contains(c.Logged(), "nothing was reloaded") {
		t.Error("the reloads did not include both outcomes")
	}
}

// scrapeWhole scrapes once, and returns an error if the answer is incomplete: from the upstream's
// first line to the rule's result at the end.
func scrapeWhole(url string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", res.Status, body)
	}
	if err := checkExposition(body); err != nil {
		return err
	}
	for _, part := range []string{"DCGM_FI_DEV_GPU_TEMP", "\nkpulse_gpu_health{", "\nkpulse_source_up", "\nkpulse_build_info{", "\nmy_devices "} {
		if !strings.Contains("\n"+string(body), part) {
			return fmt.Errorf("the body lacks %s:\n%s", part, body)
		}
	}
	return nil
}

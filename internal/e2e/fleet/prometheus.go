package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// group is what Prometheus scrapes at one address: sources of a proxy, or exporters.
type group struct {
	proxy   string
	sources []string
}

// startProxy starts a proxy that reads exporters when it is scraped.
func startProxy(ctx context.Context, dir string, trial trial, urls []string) (*child, error) {
	var config bytes.Buffer
	config.WriteString("sources:\n")
	for _, u := range urls {
		fmt.Fprintf(&config, "- {backend: prometheus, source: %q, poll: 0}\n", u)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kpulse-"+address+".yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, address, "/-/healthy", trial.proxy, append([]string{"--config.file=" + file, "--source.min-interval=0s", "--series-limit=4000000", "--web.listen-address=" + address}, trial.form.flags...)...)
}

// startPrometheus starts a Prometheus that scrapes groups.
func startPrometheus(ctx context.Context, dir string, trial trial, groups []group) (*child, error) {
	var config bytes.Buffer
	fmt.Fprintf(&config, "global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: 1m, external_labels: {cluster: east}}\n", interval(trial.nodes))
	config.WriteString("scrape_configs:\n- job_name: gpus\n  relabel_configs:\n  - {source_labels: [__param_source], target_label: instance, regex: '.*/(node-[0-9]+)/.*', replacement: '$1'}\n  static_configs:\n")
	for _, g := range groups {
		for _, source := range g.sources {
			u, err := url.Parse(source)
			if err != nil {
				return nil, err
			}
			if g.proxy == "" {
				fmt.Fprintf(&config, "  - {targets: ['%s'], labels: {__metrics_path__: '%s', instance: '%s'}}\n", u.Host, u.Path, strings.Split(u.Path, "/")[1])
				continue
			}
			fmt.Fprintf(&config, "  - {targets: ['%s'], labels: {__param_source: '%s'}}\n", g.proxy, source)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), config.Bytes(), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return start(ctx, address, "/-/ready", "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.enable-admin-api", "--web.enable-lifecycle", "--web.listen-address="+address)
}

// loadRules makes a running Prometheus evaluate rules as well, and sets the scrape interval of a
// large fleet.
func (c *child) loadRules(dir string, files []string) error {
	config := filepath.Join(dir, "prometheus.yml")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	list := "rule_files:\n"
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		list += "- '" + path + "'\n"
	}
	text = regexp.MustCompile(`scrape_interval: \w+, scrape_timeout: \w+`).ReplaceAll(text, fmt.Appendf(nil, "scrape_interval: %[1]s, scrape_timeout: %[1]s", rulesInterval))
	if err := os.WriteFile(config, append([]byte(list), text...), 0o600); err != nil {
		return err
	}
	res, err := get(c.ctx, http.MethodPost, "http://"+c.address+"/-/reload")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("reload: %s\n%s", res.Status, c.tail())
	}
	return nil
}

// get decodes an answer of Prometheus' API.
func (c *child) get(method, path string, answer any) error {
	res, err := get(c.ctx, method, "http://"+c.address+path)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s", path, res.Status, body)
	}
	return json.Unmarshal(body, answer)
}

// query returns the single value of an expression, 0 if there is none.
func (c *child) query(expr string) float64 {
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := c.get(http.MethodGet, "/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &answer); err != nil || len(answer.Data.Result) != 1 {
		return 0
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// groups returns the seconds of each rule group's last evaluation.
func (c *child) groups() (map[string]float64, error) {
	var answer struct {
		Data struct {
			Groups []struct {
				Name           string
				EvaluationTime float64
			}
		}
	}
	took := map[string]float64{}
	err := c.get(http.MethodGet, "/api/v1/rules", &answer)
	for _, g := range answer.Data.Groups {
		took[g.Name] = g.EvaluationTime
	}
	return took, err
}

// live returns the bytes in use after a garbage collection.
func (c *child) live() (float64, error) {
	res, err := get(c.ctx, http.MethodGet, "http://"+c.address+"/debug/pprof/heap?gc=1")
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err != nil {
		return 0, err
	}
	return c.own("go_memstats_heap_alloc_bytes")
}

// own returns a metric of the program itself.
func (c *child) own(name string) (float64, error) {
	res, err := get(c.ctx, http.MethodGet, "http://"+c.address+"/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s does not serve %s", c.cmd.Path, name)
}

// bytesPerSample writes Prometheus' memory to blocks, and divides their size by their samples.
func (c *child) bytesPerSample() (float64, error) {
	var answer struct{ Data struct{ Name string } }
	if err := c.get(http.MethodPost, "/api/v1/admin/tsdb/snapshot", &answer); err != nil {
		return 0, err
	}
	var data string
	for _, flag := range c.cmd.Args {
		if path, ok := strings.CutPrefix(flag, "--storage.tsdb.path="); ok {
			data = path
		}
	}
	var size, samples float64
	err := filepath.Walk(filepath.Join(data, "snapshots", answer.Data.Name), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		size += float64(info.Size())
		if info.Name() != "meta.json" {
			return nil
		}
		var meta struct{ Stats struct{ NumSamples float64 } }
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		err = json.Unmarshal(text, &meta)
		samples += meta.Stats.NumSamples
		return err
	})
	return size / samples, err
}

// series returns the number of series in Prometheus' memory.
func (c *child) series() float64 {
	var answer struct {
		Data struct{ HeadStats struct{ NumSeries float64 } }
	}
	if err := c.get(http.MethodGet, "/api/v1/status/tsdb", &answer); err != nil {
		return 0
	}
	return answer.Data.HeadStats.NumSeries
}

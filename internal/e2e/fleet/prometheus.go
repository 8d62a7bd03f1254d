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
	"strconv"
	"strings"
)

// group is what Prometheus scrapes at one address: sources of a proxy, or exporters.
type group struct {
	proxy   string
	sources []string
}

// startProxy starts one that reads so many exporters when it is scraped.
func startProxy(ctx context.Context, dir string, trial trial, urls []string) (*child, error) {
	var config bytes.Buffer
	config.WriteString("sources:\n")
	for _, u := range urls {
		fmt.Fprintf(&config, "- {backend: prometheus, source: %q, poll: 0}\n", u)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kpulse-"+address+".yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, address, "/-/healthy", trial.proxy, "--config.file="+file, "--series="+trial.form, "--source.min-interval=0s", "--series-limit=4000000", "--web.listen-address="+address)
}

// startPrometheus starts one that scrapes groups and evaluates rules.
func startPrometheus(ctx context.Context, dir string, trial trial, groups []group) (*child, error) {
	var config bytes.Buffer
	fmt.Fprintf(&config, "global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: 15s, external_labels: {cluster: east}}\nrule_files: [", interval(trial.nodes))
	for i, file := range trial.rules {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&config, "%s'%s'", strings.Repeat(", ", min(i, 1)), path)
	}
	config.WriteString("]\nscrape_configs:\n- job_name: gpus\n  relabel_configs:\n  - {source_labels: [__param_source], target_label: instance, regex: '.*/(node-[0-9]+)/.*', replacement: '$1'}\n  static_configs:\n")
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
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	return start(ctx, address, "/-/ready", "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.enable-admin-api", "--web.listen-address="+address)
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

// query returns the one value of an expression, and 0 where there is none.
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

// slowest names the rule group that took longest the last time, and its seconds.
func (c *child) slowest() string {
	var answer struct {
		Data struct {
			Groups []struct {
				Name           string
				EvaluationTime float64
			}
		}
	}
	if err := c.get(http.MethodGet, "/api/v1/rules", &answer); err != nil || len(answer.Data.Groups) == 0 {
		return ""
	}
	most := answer.Data.Groups[0]
	for _, g := range answer.Data.Groups {
		if g.EvaluationTime > most.EvaluationTime {
			most = g
		}
	}
	return fmt.Sprintf("%s, %.2f", most.Name, most.EvaluationTime)
}

// bytesPerSample writes what Prometheus has in memory as a block, and divides its size by
// its samples.
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

// series is how many Prometheus has in memory.
func (c *child) series() float64 {
	var answer struct {
		Data struct{ HeadStats struct{ NumSeries float64 } }
	}
	if err := c.get(http.MethodGet, "/api/v1/status/tsdb", &answer); err != nil {
		return 0
	}
	return answer.Data.HeadStats.NumSeries
}

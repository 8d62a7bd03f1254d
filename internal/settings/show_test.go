package settings

import (
	"bytes"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// shownText returns the settings of a file as --config.show prints them.
func shownText(t *testing.T, c *Config) []byte {
	t.Helper()
	o := NewOptions()
	for i := range table {
		if s := &table[i]; s.Flag != "" {
			o.Given = append(o.Given, &givenFlag{Setting: s})
		}
	}
	o.Config = *c
	for _, one := range c.Sources {
		b, err := parseBackend(one.Backend)
		if err != nil {
			b = &Backends[0]
		}
		o.Upstreams = append(o.Upstreams, Upstream{Source: one, Backend: b})
	}
	text, err := yaml.Marshal(o.asFile("/work"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// showsItself checks that Parse reads what is shown as the same settings, unless something is masked.
func showsItself(t *testing.T, c *File) {
	t.Helper()
	shown := shownText(t, &c.Config)
	if bytes.Contains(shown, []byte(Masked)) {
		return
	}
	again, err := Parse("/work/fuzz.yml", shown)
	if err != nil {
		t.Fatalf("what is shown is refused: %v\n%s", err, shown)
	}
	if twice := shownText(t, &again.Config); !bytes.Equal(twice, shown) {
		t.Errorf("shown again, it is\n%s, not\n%s", twice, shown)
	}
	if c.Sources, again.Sources = nil, nil; c.Kube.Discover.HTTP == nil && !reflect.DeepEqual(again.Config, c.Config) {
		t.Errorf("what is shown means\n%+v, not\n%+v\n%s", again.Config, c.Config, shown)
	}
}

// TestShowSaysTheSame: what is shown means the same as the file, and has every key of it.
func TestShowSaysTheSame(t *testing.T) {
	files := map[string]string{"the example": uncommented(t), "everything": string(changedAll())}
	for _, test := range goodFiles {
		files[test.name] = test.text
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("/work/fuzz.yml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			before := c.lines
			shown := shownText(t, &c.Config)
			again, err := Parse("/work/fuzz.yml", bytes.ReplaceAll(shown, []byte(Masked), []byte("x")))
			if err != nil {
				t.Fatal(err)
			}
			for path := range before {
				if again.lines[path] == 0 && !strings.HasPrefix(path, "xids.") && !strings.HasSuffix(path, ".labels") && !strings.Contains(path, "_config.") { // may be one word
					t.Errorf("%s is not shown:\n%s", path, shown)
				}
			}
			showsItself(t, c)
		})
	}
}

// changedAll returns a file in which no value is the default.
func changedAll() []byte {
	var b strings.Builder
	b.WriteString(`weights: {sm: 1, tensor: 2, dram: 3, engine: 4}
missing_inputs: zero
min_coverage: 0.25
temperatures: {H200: 50, A100: 51, H100: 52, RTX 6000: 53, other: 54}
xids: {109: warning}
xid_hold: 2h
dialect: [{names: [A], field: gpu_ecc_errors_total, labels: {severity: correctable, scope: aggregate}, unit: number}]
limits: {series_limit: 11, max_body: 12KiB, max_label_value: 13, max_requests: 14, min_read_rate: 15}
sources: [{backend: nvml, source: x, poll: 3s, dcgm_host: h, dcgm_fields: core, counters: c.csv, node_name: n, expected_gpus: 8, http_config: {}}]
rules: {files: [a.yml], window: 2m, max_samples: 16}
kernel_log: /log
state_file: /state.json
compat: ["4.8"]
kube: {config: k, pod_resources: /socket, workloads: true, workload_labels: [l],
  discover: {selector: a=b, namespace: n, port: "1", path: /p, scheme: https, max_sources: 17, http_config: {}}}
series: {form: full, birth: 2m, exclude: [kpulse_.+]}
thresholds:
`)
	for _, threshold := range NewOptions().thresholds() {
		b.WriteString(strings.NewReplacer("thresholds: {", "  ", "}", "").Replace(setTo(threshold.key)) + "\n")
	}
	b.WriteString("health:\n")
	for i := range canonical.Conditions {
		name := canonical.Conditions[i].Name
		b.WriteString("  " + name + ": off\n")
	}
	return []byte(b.String())
}

// filled sets everything below v: strings to text, lists and maps to one item.
func filled(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				filled(v.Field(i), text)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0), text)
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		filled(item, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x_file").Convert(v.Type().Key()), item)
	case reflect.Interface:
		v.Set(reflect.ValueOf(text))
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// openKeys are the keys of an http_config that are shown; all others are masked.
var openKeys = []string{
	"authorization.credentials_file", "authorization.type", "basic_auth.password_file", "basic_auth.username_file", "bearer_token_file",
	"http_headers.x_file.files[]", "no_proxy", "oauth2.client_certificate_key_file", "oauth2.client_id", "oauth2.client_secret_file",
	"oauth2.no_proxy", "oauth2.scopes[]", "oauth2.tls_config.ca_file", "oauth2.tls_config.cert_file", "oauth2.tls_config.key_file",
	"oauth2.tls_config.server_name", "tls_config.ca_file", "tls_config.cert_file", "tls_config.key_file", "tls_config.server_name",
}

// TestShowMasksSecrets: of an http_config with all keys set, only harmless values are shown.
func TestShowMasksSecrets(t *testing.T) {
	var all promconfig.HTTPClientConfig
	proxy := &url.URL{Scheme: "http", Host: "proxy", User: url.UserPassword("hunter2", "hunter2")}
	filled(reflect.ValueOf(&all).Elem(), "hunter2")
	all.OAuth2.TokenURL = "https://hunter2@sso"
	all.ProxyURL.URL, all.OAuth2.ProxyURL.URL = proxy, proxy
	c := Default()
	c.Kube.Discover.HTTP, c.Kube.Discover.Path = &all, "/m?hunter2"
	var open []string
	var visit func(path string, n *yaml.Node)
	visit = func(path string, n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "hunter2") {
			open = append(open, strings.TrimPrefix(path, ".kube.discover.http_config."))
		}
		for i, inner := range n.Content {
			if n.Kind != yaml.MappingNode {
				visit(path+"[]", inner)
			} else if i%2 == 1 {
				visit(path+"."+n.Content[i-1].Value, inner)
			}
		}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(shownText(t, &c), &root); err != nil {
		t.Fatal(err)
	}
	visit("", root.Content[0])
	if slices.Sort(open); !slices.Equal(open, openKeys) {
		t.Errorf("shown are %q, want %q", open, openKeys)
	}
}

// TestMaskedIsRefused: the mask is not accepted as a secret.
func TestMaskedIsRefused(t *testing.T) {
	const text = "preset: ai\nsources:\n- source: http://<secret>@node:9400/metrics\n  http_config:\n    proxy_url: http://<secret>@proxy\n    tls_config:\n      key: <secret>\n    http_headers:\n      X:\n        values:\n        - <secret>\n"
	const remedy = ": contains <secret>, which --config.show prints in place of a secret; put the real one there"
	want := "c.yml:3: sources[1].source" + remedy + "\nc.yml:5: sources[1].http_config.proxy_url" + remedy +
		"\nc.yml:7: sources[1].http_config.tls_config.key" + remedy + "\nc.yml:11: sources[1].http_config.http_headers.X.values[1]" + remedy
	if _, err := Parse("c.yml", []byte(text)); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

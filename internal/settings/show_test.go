package settings

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// openHTTP is a file whose http_config has no secrets.
const openHTTP = "sources:\n- http_config:\n    bearer_token_file: t\n    proxy_url: http://proxy:3128\n    tls_config: {min_version: TLS12, ca: \"a\\nb\", cert_file: c, key_file: k}\n    http_headers: {X-A: {files: [a, /b]}}\n"

// TestShowSaysTheSame: the output of Show means the same as the file.
func TestShowSaysTheSame(t *testing.T) {
	files := map[string]string{"the example": withUser(uncommented(t)), "HTTP": openHTTP}
	for _, test := range goodFiles {
		files[test.name] = test.text
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("fuzz.yml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			showsItself(t, c)
		})
	}
}

// withUser replaces the only secret of the example with a file.
func withUser(text string) string {
	return strings.Replace(text, "username: kpulse,", "username_file: u,", 1)
}

// TestShowHasEveryKey: Show shows each key of the example for a file that has it.
func TestShowHasEveryKey(t *testing.T) {
	for _, without := range []string{"", "\nweights:"} { // which replace the preset
		text := uncommented(t)
		if without != "" {
			text = "preset: hpc\n" + strings.Replace(text, without, "\n#", 1)
		}
		c, err := Parse(example, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		shown, err := c.Show(Showing{Mask: func(url string) string { return url }})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(example, []byte(strings.ReplaceAll(string(shown), Masked, "x")))
		if err != nil {
			t.Fatal(err)
		}
		has := again.Lines()
		for path := range c.Lines() {
			if has[path] == 0 && !regexp.MustCompile(`^xids\.\d+\.`).MatchString(path) { // may be one word
				t.Errorf("%s is not shown", path)
			}
		}
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
compat: ["4.8"]
kube: {config: k, pod_resources: /socket, workloads: true, workload_labels: [l],
  discover: {selector: a=b, namespace: n, port: "1", path: /p, scheme: https, max_sources: 17, http_config: {}}}
series: {form: full, birth: 2m, exclude: [kpulse_.+]}
thresholds:
`)
	for _, key := range keysOf[thresholds]() {
		text := strings.NewReplacer("thresholds: {", "  ", "}", "").Replace(string(setTo(key)))
		b.WriteString(text + "\n")
	}
	b.WriteString("health:\n")
	for _, name := range canonical.ConditionNames() {
		b.WriteString("  " + name + ": off\n")
	}
	return []byte(b.String())
}

// TestShowForgetsNothing: Show shows every key with the value of the file, not the default.
// Add new keys to changedAll.
func TestShowForgetsNothing(t *testing.T) {
	c, err := Parse("fuzz.yml", changedAll())
	if err != nil {
		t.Fatal(err)
	}
	showsItself(t, c)
	changed, standard := values(t, &c.Config), values(t, new(Default()))
	for path, value := range standard {
		if now, is := changed[path]; is && now == value {
			t.Errorf("%s is %s in both", path, value)
		}
	}
	keys := map[string]bool{}
	for path := range changed {
		for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' }) {
			keys[key] = true
		}
	}
	for _, all := range [][]string{keysOf[file](), keysOf[thresholds](), keysOf[Limits](), keysOf[Rules](), keysOf[Kube](), keysOf[Discover](), keysOf[Source](), keysOf[row](), keysOf[Series]()} {
		for _, key := range all {
			if !keys[key] && key != "preset" { // which weights replace
				t.Errorf("%s is not shown", key)
			}
		}
	}
}

// values returns the shown values of c, by path.
func values(t *testing.T, c *Config) map[string]string {
	t.Helper()
	shown, err := c.Show(Showing{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("shown.yml", shown)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, n := range f.document.nodes {
		if len(n.value.Content) == 0 {
			all[n.path] = n.value.Value
		}
	}
	return all
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
	"authorization.credentials_file", "authorization.credentials_ref", "authorization.type",
	"basic_auth.password_file", "basic_auth.password_ref", "basic_auth.username_file", "basic_auth.username_ref",
	"bearer_token_file",
	"enable_http2", "follow_redirects", "http_headers.x_file.files[1]", "no_proxy",
	"oauth2.audience", "oauth2.client_certificate_key_file", "oauth2.client_certificate_key_id", "oauth2.client_certificate_key_ref",
	"oauth2.client_id", "oauth2.client_secret_file", "oauth2.client_secret_ref", "oauth2.grant_type", "oauth2.iss", "oauth2.no_proxy",
	"oauth2.proxy_from_environment", "oauth2.scopes[1]", "oauth2.signature_algorithm",
	"oauth2.tls_config.ca", "oauth2.tls_config.ca_file", "oauth2.tls_config.ca_ref", "oauth2.tls_config.cert", "oauth2.tls_config.cert_file", "oauth2.tls_config.cert_ref",
	"oauth2.tls_config.insecure_skip_verify", "oauth2.tls_config.key_file", "oauth2.tls_config.key_ref", "oauth2.tls_config.server_name",
	"proxy_from_environment",
	"tls_config.ca", "tls_config.ca_file", "tls_config.ca_ref", "tls_config.cert", "tls_config.cert_file", "tls_config.cert_ref",
	"tls_config.insecure_skip_verify", "tls_config.key_file", "tls_config.key_ref", "tls_config.server_name",
}

// TestShowMasksSecrets: of an http_config with all keys set, only harmless values are shown.
func TestShowMasksSecrets(t *testing.T) {
	var all promconfig.HTTPClientConfig
	filled(reflect.ValueOf(&all).Elem(), "hunter2")
	all.OAuth2.TokenURL = "https://hunter2@sso"
	c := Default()
	c.Sources = []Source{{HTTP: &HTTP{HTTPClientConfig: all}}}
	c.Kube.Discover.HTTP, c.Kube.Discover.Path = &HTTP{HTTPClientConfig: all}, "/m?hunter2"
	var open []string
	said := map[string]string{}
	body, err := c.Show(Showing{Origin: func(path string) string { said[path] = path; return "from " + path }})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		value, path, _ := strings.Cut(strings.TrimSpace(line), " # from ")
		if _, key, in := strings.Cut(path, "http_config."); in && !strings.Contains(value, Masked) {
			open = append(open, key)
		} else if !in && strings.Contains(value, "hunter2") {
			t.Errorf("not masked: %s", line)
		}
	}
	slices.Sort(open)
	want := slices.Sorted(slices.Values(append(slices.Clone(openKeys), openKeys...)))
	if !slices.Equal(open, want) {
		t.Errorf("shown are %q, want %q", slices.Compact(open), slices.Compact(want))
	}
	if len(said) < 200 {
		t.Errorf("asked where %d values are from: %v", len(said), slices.Sorted(maps.Keys(said)))
	}
}

// TestShowLocatesFiles: each file name that Parse takes relative to the config file is shown
// as an absolute path.
func TestShowLocatesFiles(t *testing.T) {
	text := withUser(uncommented(t))
	text = strings.NewReplacer("files: []", "files: [r/*.yml]", `config: ""`, "config: kubeconfig", "#http_config", "http_config", "    discover:", "    discover:").Replace(text)
	c, err := Parse("sub/c.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Show(Showing{Directory: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"u", "node7.password", "ca.pem", "counters.csv", "r/*.yml", "kubeconfig"} {
		if !strings.Contains(string(shown), ": /work/sub/"+name+"\n") && !strings.Contains(string(shown), "- /work/sub/"+name+"\n") {
			t.Errorf("%s is not shown by its whole path:\n%s", name, shown)
		}
	}
	here, err := Parse("c.yml", shown)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := Parse("/else/where/c.yml", shown)
	if err != nil || !reflect.DeepEqual(here.Config, elsewhere.Config) {
		t.Errorf("in another directory it means %+v: %v", elsewhere, err)
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

// TestLines: merged values have lines of their own.
func TestLines(t *testing.T) {
	f, err := Parse("c.yml", []byte("preset: ai\nlimits:\n  <<: {max_body: 1KiB,\n    max_requests: 3}\n  max_requests: 4\nsources:\n- <<:\n  - {source: http://a}\n  - {poll: 3s}\n- http_config:\n    bearer_token_file: f\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"preset": 1, "limits.max_body": 3, "limits.max_requests": 5, "sources[1].source": 8, "sources[1].poll": 9, "sources[2].http_config.authorization.credentials_file": 11, "series": 0} {
		if got := f.Lines()[path]; got != want {
			t.Errorf("%s is in line %d, want %d", path, want, got)
		}
	}
}

// TestShowIsFitToBeShown: for any text or key, the output contains only printable characters,
// and is read back unchanged.
func TestShowIsFitToBeShown(t *testing.T) {
	for name, text := range map[string]string{
		"controls": "a\x01\x1b[2J\x7f\r\n\tb",
		"c1":       "a\u0080\u0085\u009b31m",
		"bidi":     "a\u202e\u2066\u061cb",
		"width":    "a\u200b\ufeff\u00ad\u2060b\U000e0041\u3164",
		"blanks":   " a\u00a0\u2003\u2028\u2029 ",
		"quotes":   `a"b\u202e'\` + "\u202e" + `: #{[&*!|>%@` + "`",
		"words":    "null",
		"a line":   "a\n",
		"bytes":    "a\xff\u202e",
	} {
		c := Default()
		c.Judge.Thresholds.Temperatures = []compute.ModelTemperature{{Model: strings.ToValidUTF8(text, "."), Celsius: 50}}
		c.Rules.Files = []string{"/" + text}
		c.KernelLog = KernelLog("/" + strings.ToValidUTF8(text, "."))
		headers := map[string]promconfig.Header{"X-" + strings.ToValidUTF8(text, "."): {Files: []string{"/" + text}}}
		c.Sources = []Source{{NodeName: text, DCGMHost: text, Counters: "/" + text, HTTP: &HTTP{HTTPClientConfig: promconfig.HTTPClientConfig{HTTPHeaders: &promconfig.Headers{Headers: headers}}}}}
		shown, err := c.Show(Showing{Origin: func(string) string { return "a flag" }})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(shown) {
			if r != '\n' && (!unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)) {
				t.Errorf("%s: %U is shown:\n%s", name, r, shown)
				break
			}
		}
		again, err := Parse("/c.yml", shown)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, shown)
			continue
		}
		if s := again.Sources[0]; s.NodeName != text || s.DCGMHost != text || s.Counters != "/"+text || !reflect.DeepEqual(s.HTTP.HTTPHeaders.Headers, headers) {
			t.Errorf("%s: the source comes back as %q, %+v", name, s, s.HTTP.HTTPHeaders)
		}
		if again.Rules.Files[0] != "/"+text || again.KernelLog != c.KernelLog || again.Judge.Thresholds.Temperatures[0].Model != c.Judge.Thresholds.Temperatures[0].Model {
			t.Errorf("%s: read back are %q, %q, %+v", name, again.Rules.Files, again.KernelLog, again.Judge.Thresholds.Temperatures[0])
		}
	}
}

// TestShowMasksBytes: texts that are written in base64 because they are not UTF-8 are masked too.
func TestShowMasksBytes(t *testing.T) {
	c := Default()
	c.Kube.Discover.Path = "/m?hunter2\xff"
	shown, err := c.Show(Showing{Mask: func(url string) string { return strings.Replace(url, "hunter2\xff", Masked, 1) }})
	if err != nil || !strings.Contains(string(shown), "path: /m?"+Masked+"\n") {
		t.Errorf("%v in:\n%s", err, shown)
	}
}

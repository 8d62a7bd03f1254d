package settings

import (
	"strings"
	"testing"
)

// TestSources: the settings of sources are read, and their files are relative to the
// config file.
func TestSources(t *testing.T) {
	c, err := Parse("/etc/kpulse-proxy/config.yml", []byte(`sources:
- source: https://node7:9400/metrics
  node_name: node7
  poll: 30s
  expected_gpus: 8
  http_config:
    basic_auth: {username: u, password_file: pw}
    tls_config: {ca_file: /ca.pem}
- {backend: dcgm, dcgm_host: "node9:5555"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sources) != 2 {
		t.Fatalf("%d sources", len(c.Sources))
	}
	a, b := &c.Sources[0], &c.Sources[1]
	if a.Backend != "" || a.Source != "https://node7:9400/metrics" || a.NodeName != "node7" || a.Poll.String() != "30s" || a.ExpectedGPUs != 8 ||
		a.HTTP.BasicAuth.Username != "u" || a.HTTP.BasicAuth.PasswordFile != "/etc/kpulse-proxy/pw" || a.HTTP.TLSConfig.CAFile != "/ca.pem" || !a.HTTP.FollowRedirects {
		t.Errorf("the first is %+v", a)
	}
	if b.Backend != "dcgm" || b.DCGMHost != "node9:5555" || b.HTTP != nil {
		t.Errorf("the second is %+v", b)
	}
	for _, test := range []struct {
		path, want string
	}{
		{"sources[1].poll", "/etc/kpulse-proxy/config.yml:4: sources[1].poll: wrong"},
		{"sources[1].backend", "/etc/kpulse-proxy/config.yml:2: sources[1]: wrong"},
		{"sources[2].dcgm_host", "/etc/kpulse-proxy/config.yml:9: sources[2].dcgm_host: wrong"},
	} {
		if got := c.Problem(test.path, "wrong").String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestRefusedHTTPConfigsKeepSecrets: errors do not show a secret in the wrong place.
func TestRefusedHTTPConfigsKeepSecrets(t *testing.T) {
	refused := 0
	for _, text := range []string{
		"hunter2", "[hunter2]", "{hunter2: 1}", "{basic_auth: hunter2}", "{basic_auth: [hunter2]}", "{basic_auth: {username: [hunter2]}}",
		"{tls_config: {insecure_skip_verify: hunter2}}", `{tls_config: {insecure_skip_verify: "a` + "`" + `\nhunter2"}}`,
		"{proxy_url: 'http://u:hunter2@[x'}", `{proxy_url: "http://u:hunter2\"@[x"}`, "{authorization: {type: basic, credentials: hunter2}}",
		"{bearer_token: hunter2, bearer_token_file: f}", "{http_headers: hunter2}", "{http_headers: {Authorization: {secrets: [hunter2]}}}",
		"{follow_redirects: hunter2}", "!!int hunter2", "{basic_auth: {password: !!int hunter2}}", "{oauth2: {client_id: a, token_url: [hunter2]}}", "{oauth2: {client_id: a, token_url: b, endpoint_params: hunter2}}",
	} {
		_, err := Parse("bad.yml", []byte("sources:\n- http_config: "+text+"\n"))
		if err == nil {
			continue
		}
		refused++
		if said := err.Error(); strings.Contains(said, "hunter") && text != "{hunter2: 1}" { // keys are shown
			t.Errorf("%s: %s", text, said)
		}
	}
	if refused < 19 {
		t.Errorf("%d are refused", refused)
	}
}

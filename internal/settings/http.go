package settings

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

const wantHTTP = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"

var notFound = diag.Pattern(`field (\S+) not found`)

// readHTTP reads Prometheus' http_config. Its files are relative to the config file.
func readHTTP(v entry) *promconfig.HTTPClientConfig {
	body, err := yaml.Marshal(v.Node)
	if err != nil || v.isNull() {
		return nil
	}
	var c promconfig.HTTPClientConfig
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		_, wrongType := errors.AsType[*yaml.TypeError](err)
		_, wrongURL := errors.AsType[*url.Error](err)
		switch key := notFound().FindStringSubmatch(err.Error()); {
		case key != nil:
			v.reject("%s is not a known key; see the documentation of Prometheus", key[1])
		case wrongType || wrongURL || strings.Contains(err.Error(), "`"): // they quote values, which may be secrets
			v.reject("a value where another form is expected; %s", wantHTTP)
		default:
			v.reject("%s; %s", strings.TrimPrefix(err.Error(), "yaml: "), wantHTTP)
		}
		return nil
	}
	c.SetDirectory(v.file.beside("."))
	return &c
}

// shownHTTP are the keys of an http_config, besides those of files and URLs, whose texts are no secrets.
var shownHTTP = []string{"type", "server_name", "client_id", "scopes", "no_proxy", "min_version", "max_version"}

// showHTTP returns an http_config, nil for none, with its secrets masked.
func showHTTP(c *promconfig.HTTPClientConfig, directory string) any {
	if c == nil {
		return nil
	}
	shown := *c
	shown.SetDirectory(directory)
	var n yaml.Node
	if err := n.Encode(&shown); err != nil {
		return Masked // it has been read from YAML
	}
	maskHTTP("", &n)
	return &n
}

// maskHTTP masks below a key of an http_config all texts but those of harmless keys.
func maskHTTP(key string, n *yaml.Node) {
	isFile := strings.HasSuffix(key, "_file") || key == "files"
	switch {
	case strings.HasSuffix(key, "_url"):
		n.SetString(mask(n.Value))
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && !isFile && !slices.Contains(shownHTTP, key):
		n.SetString(Masked)
	}
	for i, inner := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode, i%2 == 1 && (key == "claims" || key == "endpoint_params"): // with keys of the user
			maskHTTP(key, inner)
		case i%2 == 1:
			maskHTTP(n.Content[i-1].Value, inner)
		}
	}
}

// CheckKube returns the Kubernetes settings whose files are missing or invalid. It sends no
// requests.
func CheckKube(k *Kube) (wrong []*compute.OptionError) {
	if k.Config != "" {
		if _, err := holders.NewClient(k.Config, ""); err != nil {
			wrong = append(wrong, compute.Reject("kube.config", "%v", err))
		}
	}
	found := Upstream{Source: Source{HTTP: k.Discover.HTTP}}
	if _, err := found.Client(); err != nil {
		wrong = append(wrong, compute.Reject("kube.discover.http_config", "%v", err))
	}
	return wrong
}

package settings

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const wantHTTP = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"

// Errors of yaml.v3 and net/url show values, which may be passwords.
var (
	notFound   = diag.Pattern(`field (\S+) not found`)
	ofValue    = diag.Pattern("(?s)!!\\w+ `.*`")
	ofProxyURL = diag.Pattern(`(?s)parse ".*": `)
)

// readHTTP reads Prometheus' http_config. Its files are relative to the config file.
func readHTTP(v entry) *promconfig.HTTPClientConfig {
	body, err := yaml.Marshal(v.Node)
	if err != nil || v.isNull() {
		return nil
	}
	var c promconfig.HTTPClientConfig
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	err = decoder.Decode(&c)
	if _, wrongType := errors.AsType[*yaml.TypeError](err); wrongType {
		if key := notFound().FindStringSubmatch(err.Error()); key != nil {
			v.reject("%s is not a known key; see the documentation of Prometheus", key[1])
		} else {
			v.reject("a value where another form is expected; %s", wantHTTP)
		}
		return nil
	} else if err != nil {
		text := ofProxyURL().ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "no URL: ")
		v.reject("%s; %s", ofValue().ReplaceAllString(text, "a value"), wantHTTP)
		return nil
	}
	proxies := []promconfig.ProxyConfig{c.ProxyConfig}
	if c.OAuth2 != nil {
		proxies = append(proxies, c.OAuth2.ProxyConfig)
	}
	for _, p := range proxies {
		if u := p.ProxyURL.URL; u != nil && *u != (url.URL{}) && (u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)) {
			v.reject("proxy_url is not the URL of a proxy; write one such as http://proxy:3128, with http, https or socks5") // not shown: it may hold a password
		}
	}
	c.SetDirectory(v.file.beside("."))
	return &c
}

// showHTTP returns an http_config, nil for none. Prometheus masks its secrets; this masks the rest that
// may hold one.
func showHTTP(c *promconfig.HTTPClientConfig, directory string) any {
	if c == nil {
		return nil
	}
	shown := *c
	shown.SetDirectory(directory)
	if shown.BasicAuth != nil && shown.BasicAuth.Username != "" {
		shown.BasicAuth = new(*shown.BasicAuth)
		shown.BasicAuth.Username = Masked
	}
	if shown.OAuth2 != nil {
		shown.OAuth2 = new(*shown.OAuth2)
		shown.OAuth2.EndpointParams, shown.OAuth2.Claims = map[string]string{}, map[string]any{}
		for name := range c.OAuth2.EndpointParams {
			shown.OAuth2.EndpointParams[name] = Masked
		}
		for name := range c.OAuth2.Claims {
			shown.OAuth2.Claims[name] = Masked
		}
	}
	if shown.HTTPHeaders != nil {
		headers := map[string]promconfig.Header{}
		for name, header := range c.HTTPHeaders.Headers {
			header.Values = slices.Repeat([]string{Masked}, len(header.Values))
			headers[name] = header
		}
		shown.HTTPHeaders = &promconfig.Headers{Headers: headers}
	}
	var n yaml.Node
	if err := n.Encode(&shown); err != nil {
		return Masked // it has been read from YAML
	}
	maskURLs(&n)
	return &n
}

// maskURLs masks the credentials in the URLs of an http_config.
func maskURLs(n *yaml.Node) {
	for i, inner := range n.Content {
		if maskURLs(inner); i%2 == 1 && (n.Content[i-1].Value == "proxy_url" || n.Content[i-1].Value == "token_url") {
			inner.SetString(mask(inner.Value))
		}
	}
}

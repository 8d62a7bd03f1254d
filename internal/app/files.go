package app

import (
	"fmt"
	"os"
	"path/filepath"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxNamed is the size, in bytes, of the largest file that a setting for Prometheus' libraries may
// name, as they read all of it. A bundle of certificates has a few hundred thousand.
const maxNamed = 4 << 20

// checkNamed returns why one of files must not be read; "" stands for no file. Prometheus'
// libraries, which read them, would wait for a pipe forever, but report missing files themselves.
func checkNamed(what string, files ...string) error {
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := diag.Check(file, what, maxNamed); err != nil {
			return err
		}
	}
	return nil
}

// checkHTTPFiles runs checkNamed on the files of an http_config.
func checkHTTPFiles(c *promconfig.HTTPClientConfig) error {
	return checkNamed("secret or certificate", httpFiles(c)...)
}

// httpFiles returns the files that an http_config names, and "" for those that it does not.
func httpFiles(c *promconfig.HTTPClientConfig) []string {
	certificates := func(t *promconfig.TLSConfig) []string { return []string{t.CAFile, t.CertFile, t.KeyFile} }
	files := append(certificates(&c.TLSConfig), c.BearerTokenFile)
	if c.BasicAuth != nil {
		files = append(files, c.BasicAuth.UsernameFile, c.BasicAuth.PasswordFile)
	}
	if c.Authorization != nil {
		files = append(files, c.Authorization.CredentialsFile)
	}
	if c.OAuth2 != nil {
		files = append(append(files, c.OAuth2.ClientSecretFile, c.OAuth2.ClientCertificateKeyFile), certificates(&c.OAuth2.TLSConfig)...)
	}
	if c.HTTPHeaders != nil {
		for _, header := range c.HTTPHeaders.Headers {
			files = append(files, header.Files...)
		}
	}
	return files
}

// checkWebFiles runs checkNamed on --web.config.file and the files that it names. It also refuses
// a rate limit that refuses all requests or none, which the toolkit accepts. It reads the file by
// the toolkit's means: yaml.v3 takes other durations.
func checkWebFiles(path string) error {
	const what = "web config"
	if err := checkNamed(what, path); err != nil {
		return err
	}
	body, err := diag.Read(path, what, maxNamed)
	if err != nil {
		return nil // the toolkit reports it
	}
	var file web.Config
	if yaml.UnmarshalStrict(body, &file) != nil {
		return nil // the toolkit reports it
	}
	switch rate := file.RateLimiterConfig; {
	case rate.Interval != 0 && rate.Burst < 1:
		return fmt.Errorf("%s: rate_limit: a burst of %d refuses every request; write how many may come at once, such as burst: 20", path, rate.Burst)
	case rate.Interval < 0 || rate.Interval == 0 && rate.Burst != 0:
		return fmt.Errorf("%s: rate_limit: an interval of %s limits nothing; write the time between two requests, such as interval: 100ms", path, rate.Interval)
	}
	named := &file.TLSConfig
	named.SetDirectory(filepath.Dir(path))
	return checkNamed("certificate or key", named.TLSCertPath, named.TLSKeyPath, named.ClientCAs)
}

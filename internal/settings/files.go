package settings

import (
	"os"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// MaxNamed is the size, in bytes, of the largest file that a setting for Prometheus' libraries may
// name, as they read all of it. A bundle of certificates has a few hundred thousand.
const MaxNamed = 4 << 20

// CheckNamed returns why one of files must not be read; "" stands for no file. Prometheus'
// libraries, which read them, would wait for a pipe forever, but report missing files themselves.
func CheckNamed(what string, files ...string) error {
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := diag.Check(file, what, MaxNamed); err != nil {
			return err
		}
	}
	return nil
}

// CheckHTTPFiles runs CheckNamed on the files of an http_config.
func CheckHTTPFiles(c *promconfig.HTTPClientConfig) error {
	return CheckNamed("secret or certificate", HttpFiles(c)...)
}

// HttpFiles returns the files that an http_config names, and "" for those that it does not.
func HttpFiles(c *promconfig.HTTPClientConfig) []string {
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

// CheckKube returns the Kubernetes settings whose files are missing or invalid. It sends no
// requests.
func CheckKube(k *Kube) (wrong []*compute.OptionError) {
	if k.Config != "" {
		err := CheckNamed("kubeconfig", k.Config)
		if err == nil {
			_, err = holders.NewClient(k.Config, "")
		}
		if err != nil {
			wrong = append(wrong, compute.Reject("kube.config", "%v", err))
		}
	}
	found := Upstream{Source: Source{HTTP: k.Discover.HTTP}}
	if _, err := found.Client(); err != nil {
		wrong = append(wrong, compute.Reject("kube.discover.http_config", "%v", err))
	}
	return wrong
}

// MaxCounters is the size of the largest counters file, in bytes; the exporter's own has four
// thousand.
const MaxCounters = 1 << 20

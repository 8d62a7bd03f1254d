package settings

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Masked replaces a secret in the output of Show. No file may contain it.
const Masked = "<secret>"

// Showing configures Show. The zero value names no origins.
type Showing struct {
	// Origin returns the origin of the value at a path, such as sources[2].poll; "" shows
	// none. nil shows none for all values.
	Origin func(path string) string
	// Mask returns a URL, which may not parse, with Masked in place of its secrets. nil
	// masks the whole of a URL with a user, a query or a fragment.
	Mask func(url string) string
	// Directory is the base of relative file names, "" to leave them relative.
	Directory string
}

// Show returns the settings as a file that Parse reads back to the same settings, except that
// Masked replaces secrets in http_config and in the query of a path. The caller must mask the
// URLs of Sources: they may be files. Characters that diag.Text would replace are escaped.
func (c *Config) Show(how Showing) ([]byte, error) {
	var root yaml.Node
	if err := root.Encode(c.file()); err != nil {
		return nil, err
	}
	how.walk("", &root)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return diag.AppendJSON(nil, b.Bytes()), err // quoted YAML has JSON's escapes
}

// walk completes all values below a path, in the form of a document's paths.
func (how *Showing) walk(path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		how.complete(path, n)
	}
	if how.Origin != nil && len(n.Content) == 0 {
		n.LineComment = how.Origin(path)
	}
	for i, inner := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			how.walk(itemOf(path, i), inner)
		case i%2 == 1:
			how.walk(keyOf(path, n.Content[i-1].Value), inner)
		default:
			quote(inner)
		}
	}
}

// quote makes a text that diag.Text would change quoted: on one line, so that a
// comment may follow, and with escapes.
func quote(n *yaml.Node) {
	if diag.Text(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
}

// How values are shown, by path, or by the path within http_config. Of http_config, only
// values that are known to be harmless are shown.
var (
	namesFile = regexp.MustCompile(`^(kube\.config|rules\.files\[\d+\]|sources\[\d+\]\.counters)$`)
	ofHTTP    = regexp.MustCompile(`^(sources\[\d+\]|kube\.discover)\.http_config\.`)
	httpFile  = regexp.MustCompile(`(?s)^(((basic_auth|authorization|oauth2)\.)?\w+_file|(oauth2\.)?tls_config\.\w+_file|http_headers\..+\.files\[\d+\])$`)
	httpURL   = regexp.MustCompile(`^(oauth2\.)?(proxy_url|token_url)$`)
	harmless  = regexp.MustCompile(`^(follow_redirects|enable_http2|authorization\.type|(basic_auth|authorization|oauth2)\.\w+_ref|` +
		`(oauth2\.)?(no_proxy|proxy_from_environment|tls_config\.(ca|cert|\w+_ref|server_name|insecure_skip_verify|min_version|max_version))|` +
		`oauth2\.(client_id|client_certificate_key_id|grant_type|signature_algorithm|iss|audience|scopes\[\d+\]))$`)
)

// complete makes a value independent of the working directory, and masks secrets.
func (how *Showing) complete(path string, n *yaml.Node) {
	http := ofHTTP.FindString(path)
	text := n.Value
	_ = n.Decode(&text) // invalid UTF-8 is in base64
	switch key := path[len(http):]; {
	case n.ShortTag() == diag.NullTag || n.Value == "":
	case http == "" && namesFile.MatchString(key), http != "" && httpFile.MatchString(key):
		if how.Directory != "" && !filepath.IsAbs(text) {
			*n = *scalar(filepath.Join(how.Directory, text))
		}
	case key == "kube.discover.path", http != "" && httpURL.MatchString(key):
		*n = *scalar(how.mask(text))
	case http != "" && !harmless.MatchString(key):
		*n = *scalar(Masked)
	}
	quote(n)
}

func (how *Showing) mask(url string) string {
	switch {
	case how.Mask != nil:
		return how.Mask(url)
	case strings.ContainsAny(url, "@?#"):
		return Masked
	}
	return url
}

package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// NodeURLs returns the proxies in lists of nodes, as users and Slurm write them, each once. from names where the lists are from.
func NodeURLs(from string, lists ...string) (urls []string, err error) {
	seen := map[string]bool{}
	for _, list := range lists {
		hosts := []string{list}
		if strings.Trim(list, " ,") != "" && (strings.Count(list, "://") > 1 || !strings.ContainsAny(list, "@?")) { // else commas may be of a password
			if hosts, err = Hosts(list); err != nil {
				err = fmt.Errorf("%s: %w", mask(list), err)
			}
		}
		for _, host := range hosts {
			u, wrong := WithPath(host)
			if err = wrong; err != nil {
				break
			}
			if !seen[u] {
				seen[u], urls = true, append(urls, u)
			}
		}
		if err != nil && strings.Contains(list, "@") { // an item may be a part of a password
			err = fmt.Errorf("%s: this is not a URL", mask(list))
		}
		if err != nil {
			return nil, fmt.Errorf("%s=%w; give kpulse-proxies, such as NODE, NODE:9401, node[1-4,7] or http://NODE:9401/metrics", from, err)
		}
	}
	return urls, nil
}

// CheckURL returns the proxy of --url, or "".
func (o *Options) CheckURL() (string, error) {
	if len(o.CheckURLs) > 1 {
		return "", errors.New("--url: name one kpulse-proxy; only report asks several")
	}
	return strings.Join(o.CheckURLs, ""), nil
}

// WithPath completes an address as users type it: node, node:9401 or a URL.
func WithPath(typed string) (string, error) {
	scheme, rest, ok := strings.Cut(typed, "://")
	if !ok {
		scheme, rest = "http", typed
	}
	host, path, _ := strings.Cut(rest, "/")
	if _, _, err := net.SplitHostPort(host); err != nil && !ok {
		host += DefaultListen
	}
	whole := scheme + "://" + host + "/" + cmp.Or(path, "metrics")
	switch u, err := url.Parse(whole); {
	case err != nil, u.User == nil && strings.Contains(host, "@"), strings.Contains(scheme, "@"):
		return "", fmt.Errorf("%s: this is not a URL", mask(typed))
	case u.Hostname() == "":
		return "", fmt.Errorf("%s: it has no host", mask(typed))
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s: only http and https are supported", mask(typed))
	}
	return whole, nil
}

// LocalProxy returns the URL of a proxy on this machine that listens at the first of these
// addresses, or "" if it has no URL.
func LocalProxy(listen []string) string {
	host, port, err := net.SplitHostPort(listen[0])
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/metrics"
}

// WithoutEffect returns a message that names the flags of the command line that have no effect
// on the proxies that are shown, and what to do; "" if there are none. It ignores the
// environment, which may be meant for a proxy beside us, as in its container.
func (o *Options) WithoutEffect(proxies, remedy string) string {
	var flags []string
	for _, f := range o.Given {
		if f.Typed && f.Setting.Modes&modeTUI != 0 && f.Setting.Modes&modeAttach == 0 {
			flags = append(flags, f.Name())
		}
	}
	if flags == nil {
		return ""
	}
	return fmt.Sprintf("without effect: %s; these are the numbers of %s: start that with them, or %s", strings.Join(flags, ", "), proxies, remedy)
}

// ReadsItself reports whether settings of origin least or higher ask to read a source directly
// rather than through another proxy.
func (o *Options) ReadsItself(least origin) bool {
	given := max(o.Origin("backend"), o.Origin("source"), o.Origin("replay"), o.Origin("record"))
	return given >= least || len(o.Sources) > 0 && o.Origin("config.file") == FromCommandLine
}

// Bare returns a URL of /metrics without that path and without credentials, which are not needed
// and must not be shown.
func Bare(metrics string) string {
	u, err := url.Parse(metrics)
	if err != nil {
		return metrics // withPath has parsed it
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
	return strings.TrimSuffix(u.String(), "/metrics")
}

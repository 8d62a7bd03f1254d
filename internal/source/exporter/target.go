package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// hostPort matches a URL that lacks its scheme: node:9400, [::1]:9400/metrics,
// user:password@node. A file with such a name is written ./node:9400.
var hostPort = diag.Pattern(`^[^/]+:([0-9]+([/?#].*)?$|.*@)`)

// urlScheme matches the beginning of a target that is meant to be a URL.
var urlScheme = diag.Pattern(`^(?i:https?:|[a-z][a-z0-9+.-]*://)`)

// parseTarget returns the URL, http or https, that a user named, or nil for the path of a file.
func parseTarget(s string) (*url.URL, error) {
	safe := redact(s)
	switch {
	case s == "":
		return nil, refuse("no source is given", "set --source=http://localhost:9400/metrics")
	case !printable(s):
		return nil, refuse("the source holds unprintable characters", "write --source without them")
	case hostPort().MatchString(s) && !urlScheme().MatchString(s):
		return nil, refuse(fmt.Sprintf("source %q has no scheme", safe), fmt.Sprintf("write --source=http://%s, or ./%s for a file of that name", safe, safe))
	case !urlScheme().MatchString(s):
		return nil, nil
	case strayAt(s):
		return nil, refuse(fmt.Sprintf("source %q has an @ behind its host", safe), "write / ? # in a password as %2F %3F %23, and @ elsewhere as %40")
	}
	u, err := url.Parse(s)
	if err != nil {
		cause := fmt.Sprintf("source %q is not a URL", safe)
		if e, ok := errors.AsType[*url.Error](err); ok && safe == s {
			// Else the reason may quote a part of a password or token.
			cause += ": " + e.Err.Error()
		}
		return nil, refuse(cause, "write --source=http://HOST:9400/metrics, and special characters in a password percent-encoded")
	}
	port, err := strconv.Atoi(cmp.Or(u.Port(), "1"))
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse(fmt.Sprintf("source %q has the scheme %s", safe, u.Scheme), "use http:// or https://, or write the path of a file alone")
	case u.Hostname() == "":
		return nil, refuse(fmt.Sprintf("source %q has no host", safe), fmt.Sprintf("write --source=%s://localhost:9400/metrics", u.Scheme))
	case err != nil || port < 1 || port > 65535:
		return nil, refuse(fmt.Sprintf("source %q has a port that is not in 1-65535", safe), "dcgm-exporter listens on 9400")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" || u.Path == "/" {
		u.Path, u.RawPath = "/metrics", ""
	}
	return u, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// strayAt reports whether s is a URL such as http://user:1/2@host: the slash in
// the password ends the host, and the rest of the password would be shown as a
// path.
func strayAt(s string) bool {
	_, rest, ok := strings.Cut(s, "://")
	end := strings.IndexAny(rest, "/?#")
	return ok && end >= 0 && strings.Contains(rest[end:], "@")
}

// publicName returns u without user, query and fragment.
func publicName(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// redact removes from a target, which may not parse, all that can contain a
// secret: what precedes the last @, except the scheme, and the query and
// fragment. In doubt it removes too much.
func redact(s string) string {
	scheme, _, public, _ := dissect(s)
	return scheme + public
}

// Mask returns a URL, which may not parse, with a word in place of each part that redact
// would remove.
func Mask(url, word string) string {
	scheme, user, public, query := dissect(url)
	if user != "" {
		user = word + "@"
	}
	if len(query) > 1 {
		query = query[:1] + word
	}
	return scheme + user + public + query
}

// MaskSource is Mask for a target of New. It returns the path of a file unchanged.
func MaskSource(s, word string) string {
	if !urlScheme().MatchString(s) && !hostPort().MatchString(s) && printable(s) {
		return s
	}
	return Mask(s, word)
}

// dissect returns the parts of a URL, which may not parse: its scheme with ://, the user up
// to the last @, host and path, and query and fragment with their ? or #.
func dissect(s string) (scheme, user, public, query string) {
	before, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsAny(before, ":/?#@") { // a password may contain ://
		rest = s
	} else {
		scheme = before + "://"
	}
	at := strings.LastIndexByte(rest, '@') + 1
	user, public = rest[:at], rest[at:]
	if i := strings.IndexAny(public, "?#"); i >= 0 {
		public, query = public[:i], public[i:]
	}
	return scheme, user, public, query
}

func refuse(cause, remedy string) *source.Error {
	return failed(source.Unsupported, nil, cause, remedy)
}

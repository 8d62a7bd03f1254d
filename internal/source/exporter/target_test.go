package exporter

import (
	"errors"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestNewNamesTheUpstream(t *testing.T) {
	for _, tt := range []struct{ target, name, host string }{
		{"http://node:9400", "http://node:9400/metrics", "node"},
		{"http://node:9400/", "http://node:9400/metrics", "node"},
		{"http://node:9400/?a=b", "http://node:9400/metrics", "node"},
		{"HTTPS://node/metrics/", "https://node/metrics/", "node"},
		{"http://localhost:9400/federate", "http://localhost:9400/federate", "localhost"},
		{"http://[::1]:9400", "http://[::1]:9400/metrics", "::1"},
		{"http://user:hunter22@node:9400/m?token=hunter22#hunter22", "http://node:9400/m", "node"},
		{"http://hunter22@node/m", "http://node/m", "node"},
		{"http://node/a%2Fb%40c", "http://node/a%2Fb%40c", "node"},
		{"saved.prom", "saved.prom", ""},
		{"./node:9400", "./node:9400", ""},
		{"dir/node:9400", "dir/node:9400", ""},
	} {
		s, err := New(tt.target, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.target, err)
			continue
		}
		if s.Name() != tt.name {
			t.Errorf("%s: name %q, want %q", tt.target, s.Name(), tt.name)
		}
		want := source.Caps{Backend: "prometheus", Kind: source.Scraped, Aggregation: source.Window, Host: tt.host}
		if s.Caps() != want {
			t.Errorf("%s: caps %+v, want %+v", tt.target, s.Caps(), want)
		}
		s.Close()
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct{ target, cause, remedy string }{
		{"", "no source", "--source=http://localhost:9400/metrics"},
		{"node:9400", `"node:9400" has no scheme`, "--source=http://node:9400, or ./node:9400"},
		{"node:9400/m", "has no scheme", "--source=http://node:9400/m,"},
		{"[::1]:9400", "has no scheme", "--source=http://[::1]:9400"},
		{"u:hunter22@node:9400", `"node:9400" has no scheme`, "http://node:9400"},
		{"u:hunter22@node", `"node" has no scheme`, "http://node,"},
		{"node:9400?t=hunter22", `"node:9400" has no scheme`, "http://node:9400"},
		{"ftp://node/x", "has the scheme ftp", "http://"},
		{"http://", "has no host", "http://localhost:9400/metrics"},
		{"http://:9400/metrics", "has no host", "http://localhost:9400/metrics"},
		{"http:/node:9400/", "has no host", "http://localhost:9400/metrics"},
		{"http:9400", "has no host", "http://localhost:9400/metrics"},
		{"http://node:94000/", "not in 1-65535", "9400"},
		{"http://node:0/", "not in 1-65535", "9400"},
		{"http://node:x/", `invalid port ":x"`, "http://HOST:9400/metrics"},
		{"http://u:hunter22/x@node/", "@ behind its host", "%2F"},
		{"http://u:1234/hunter22@node/", "@ behind its host", "%2F"},
		{"http://u:1234?hunter22@node/", "@ behind its host", "%3F"},
		{"http://u:hunter22%@node/", "is not a URL", "percent-encoded"},
		{"http://node/%zz?t=hunter22", "is not a URL", "percent-encoded"},
		{"http://no de/", "is not a URL", "http://HOST"},
		{"http://node/\nx", "unprintable", "--source"},
		{"saved\x00.prom", "unprintable", "--source"},
		{"saved\xff.prom", "unprintable", "--source"},
	} {
		_, err := New(tt.target, Options{})
		e, ok := errors.AsType[*source.Error](err)
		if !ok || e.Failure != source.Unsupported {
			t.Errorf("%q: got %v, want an Unsupported *source.Error", tt.target, err)
			continue
		}
		if !strings.Contains(e.Cause, tt.cause) || !strings.Contains(e.Remedy, tt.remedy) {
			t.Errorf("%q: got %q; want %q and %q", tt.target, err, tt.cause, tt.remedy)
		}
		if strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: the error contains the password: %v", tt.target, err)
		}
	}
}

func TestMask(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"http://node:9400/metrics", "http://node:9400/metrics"},
		{"http://u:hunter22@node:9400/m?token=hunter22#hunter22", "http://X@node:9400/m?X"},
		{"http://hunter22@node/m#hunter22", "http://X@node/m#X"},
		{"http://u:hunter22/x@node/", "http://X@node/"},
		{"http://u:hunter22%@node/?", "http://X@node/?"},
		{"u:hunter22@node:9400", "X@node:9400"},
		{"u:a://hunter22@node", "X@node"},
		{"//u:hunter22@node", "X@node"},
		{"/metrics?hunter22", "/metrics?X"},
		{"node8", "node8"},
		{"", ""},
	} {
		if got := Mask(tt.target, "X"); got != tt.want {
			t.Errorf("%s: masked %q, want %q", tt.target, got, tt.want)
		}
	}
	for _, file := range []string{"a@b.prom", "/var/x#1?", "./node:9400", "dir/u:1@node"} {
		if got := MaskSource(file, "X"); got != file {
			t.Errorf("the file %s is masked %s", file, got)
		}
	}
	if got := MaskSource("u:hunter22@node", "X"); got != "X@node" {
		t.Errorf("a URL without a scheme is masked %s", got)
	}
}

// FuzzNew checks that no name or error shows a password, whatever surrounds it.
// The password is all digits, so that it can pass for a port.
func FuzzNew(f *testing.F) {
	for _, s := range []string{"", "/", "?", "#", "@x/", "%", "%2F", ":", "\\", "[", " ", "é"} {
		f.Add(s, "node:9400/metrics")
	}
	f.Add("A/", "node:9400") // u:7331A/@node:9400 is no file
	f.Add("", "[::1]:9400?x=1#y")
	f.Fuzz(func(t *testing.T, around, rest string) {
		const password = "7331"
		if strings.Contains(around+rest, password[:2]) {
			t.Skip()
		}
		for _, target := range []string{
			"http://u:" + password + around + "@" + rest,
			"http://u:" + around + password + "@" + rest,
			"u:" + password + around + "@node:9400",
		} {
			s, err := New(target, Options{})
			said := ""
			if err != nil {
				said = err.Error()
			} else {
				said = s.Name() + s.Caps().Host
				s.Close()
			}
			if strings.Contains(MaskSource(target, "X"), password) {
				t.Errorf("%q: masked %q", target, MaskSource(target, "X"))
			}
			if strings.Contains(said, password) || strings.ContainsAny(said, "\n\r") {
				t.Errorf("%q: said %q", target, said)
			}
		}
	})
}

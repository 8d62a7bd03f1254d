package settings

import (
	"strings"
	"testing"
)

func TestAddressesOfNodes(t *testing.T) {
	for _, test := range []struct{ typed, want string }{
		{"dgx-7", "http://dgx-7:9401/metrics"},
		{"dgx-7:9999", "http://dgx-7:9999/metrics"},
		{"[::1]:9401", "http://[::1]:9401/metrics"},
		{"http://dgx-7:9401", "http://dgx-7:9401/metrics"},
		{"https://gpu.example/proxy/metrics?source=a", "https://gpu.example/proxy/metrics?source=a"},
		{"https://gpu.example/", "https://gpu.example/metrics"},
	} {
		if got, err := WithPath(test.typed); got != test.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", test.typed, got, err, test.want)
		}
	}
	if got, err := WithPath("http://localhost"); got == "x" || err != nil {
		t.Errorf("a proxy at port 80 is taken for our own handler: %s, %v", got, err)
	}
	for _, bad := range []string{"", "::bad", "http://[::1", "ftp://dgx-7/metrics", "dgx-7:port", "http://u:7331@dgx 7/"} {
		if got, err := NodeURLs("--tui.url", "dgx-1", bad); err == nil || !strings.Contains(err.Error(), "such as NODE") || strings.Contains(err.Error(), "7331") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
	for typed, want := range map[string]string{
		"dgx-7:port": "dgx-7:port: this is not a URL", "dgx 7": "dgx 7: this is not a URL", "gpu[1-": "gpu[1-: brackets", "ftp://dgx-7/x": "ftp://dgx-7/x: only http",
		"u:se cret,b@n": "<secret>@n: this is not", "http://u:se cret,b@n,http://m": "http://<secret>@n,http://m: this is not",
		"http://u:secret@dgx 7/": "http://<secret>@dgx 7/: this is not a URL",
	} {
		if _, err := NodeURLs("--tui.url", typed); err == nil || !strings.HasPrefix(err.Error(), "--tui.url="+want) {
			t.Errorf("%q: %v, want the value in it", typed, err)
		}
	}
	for want, lists := range map[string][]string{
		"http://n1:9401/metrics http://n2:9401/metrics http://n9:80/metrics": {"n[1-2],n9:80", "n2"},
		"http://u:a,b@n/metrics http://n/metrics?source=a,b":                 {"http://u:a,b@n", "http://n/metrics?source=a,b"},
		"http://u:p@a/metrics http://u:p@b/metrics":                          {"http://u:p@a,http://u:p@b"},
	} {
		if got, err := NodeURLs("--tui.url", lists...); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", lists, got, err, want)
		}
	}
	if got, err := NodeURLs("--tui.url", "dgx-1", "http://dgx-1:9401", "dgx-2"); err != nil || len(got) != 2 {
		t.Errorf("a node given twice: %v, %v", got, err)
	}
	for _, test := range []struct{ listen, want string }{
		{":9401", "http://localhost:9401/metrics"},
		{"0.0.0.0:80", "http://localhost:80/metrics"},
		{"[::]:80", "http://localhost:80/metrics"},
		{"10.1.2.3:80", "http://10.1.2.3:80/metrics"},
		{"vsock://:9", ""},
	} {
		if got := LocalProxy([]string{test.listen}); got != test.want {
			t.Errorf("%s: %q, want %q", test.listen, got, test.want)
		}
	}
}

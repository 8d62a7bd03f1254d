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
	for _, bad := range []string{"", "::bad", "http://[::1", "ftp://dgx-7/metrics", "dgx-7:port", "http://u:secret@dgx 7/"} {
		if got, err := nodeURLs([]string{"dgx-1", bad}); err == nil || !strings.Contains(err.Error(), "such as NODE") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
	if got, err := nodeURLs([]string{"dgx-1", "http://dgx-1:9401", "dgx-2"}); err != nil || len(got) != 2 {
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

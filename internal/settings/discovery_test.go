package settings

import (
	"io"
	"strings"
	"testing"
)

// TestDiscoveryAmongFlags: discovery replaces the default source, goes with named sources, and is
// refused if it has no meaning.
func TestDiscoveryAmongFlags(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for args, want := range map[string]int{
		"--kube.discover":                                     0,
		"--kube.discover --source=http://h:9400":              1,
		"--kube.discover --backend=replay":                    1,
		"--kube.discover=app=x --poll=5s":                     0,
		"--kube.discover=app=x --kube.discover-namespace=gpu": 0,
		"--kube.discover --rules.file=x --compat=4.8":         0,
	} {
		o, err := Read(strings.Fields(args), io.Discard)
		if err != nil || len(o.Upstreams) != want || !o.Discovers() {
			t.Errorf("%s: %v, %d sources, want %d", args, err, len(o.Upstreams), want)
		}
	}
	for args, want := range map[string]string{
		"--kube.discover=a=b=c":                        "is not a label selector",
		"--kube.discover --record=x":                   "--kube.discover finds any number of them",
		"--kube.discover --once":                       "exporters are discovered to be served",
		"--kube.discover --dcgm.host=h":                "is not for the prometheus backend",
		"--kube.discover-namespace=gpu":                "is for --kube.discover; give that too",
		"--kube.discover --poll=10ms":                  "out of range",
		"--kube.discover --kube.discover-namespace=A_": "not a name of a namespace",
	} {
		if _, err := Read(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

package settings

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestUnknownVariables: a mistyped one comes with the nearest known one, and those of others are
// ignored.
func TestUnknownVariables(t *testing.T) {
	environment := []string{
		"HOME=/root", "KPULSE_SOURCE=http://a", "KPULSE_PRESET=hpc", "KPULSE_SOURC=secret", "KPULSE_DISCOVER=true",
		"KPULSE_LISTEN_ADDRESS=:1", "KPULSE_XYZZY=1", "KPULSE_PORT=9401", "KPULSE_=", "KPULSE_PROXY_SOURCE=b",
		"KPULSE_PROXY_SERVICE_HOST=10.0.0.1", "KPULSE_PROXY_SERVICE_PORT=9401", "KPULSE_PROXY_SERVICE_PORT_METRICS=9401",
		"KPULSE_PROXY_PORT=tcp://10.0.0.1:9401", "KPULSE_PROXY_PORT_9401_TCP=tcp://10.0.0.1:9401", "KPULSE_PROXY_PORT_9401_TCP_ADDR=10.0.0.1",
		"KPULSE_RESUME=1", "KPULSE_JOBS_MAX_AGE=60",
	}
	want := map[string]string{
		"KPULSE_": "", "KPULSE_DISCOVER": "KPULSE_KUBE_DISCOVER", "KPULSE_LISTEN_ADDRESS": "KPULSE_WEB_LISTEN_ADDRESS", "KPULSE_PORT": "KPULSE_POLL",
		"KPULSE_PROXY_SOURCE": "KPULSE_SOURCE", "KPULSE_SOURC": "KPULSE_SOURCE", "KPULSE_XYZZY": "",
	}
	got := map[string]string{}
	WarnOfUnknown(environment, func(text string, args ...any) {
		if said := fmt.Sprint(text, args); strings.Contains(said, "secret") {
			t.Error(said)
		}
		_, near, _ := strings.Cut(args[3].(string), "did you mean ")
		got[args[1].(string)] = strings.TrimSuffix(near, "?")
	})
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

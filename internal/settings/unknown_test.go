package settings

import (
	"fmt"
	"slices"
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
	want := []unknownVariable{
		{"KPULSE_", ""},
		{"KPULSE_DISCOVER", "KPULSE_KUBE_DISCOVER"},
		{"KPULSE_LISTEN_ADDRESS", "KPULSE_WEB_LISTEN_ADDRESS"},
		{"KPULSE_PORT", "KPULSE_POLL"},
		{"KPULSE_PROXY_SOURCE", "KPULSE_SOURCE"},
		{"KPULSE_SOURC", "KPULSE_SOURCE"},
		{"KPULSE_XYZZY", ""},
	}
	if got := UnknownVariables(environment); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var said []string
	WarnOfUnknown([]string{"KPULSE_SOURC=secret"}, func(text string, args ...any) { said = append(said, fmt.Sprint(text, args)) })
	if want := []string{"unknown environment variable[variable KPULSE_SOURC remedy did you mean KPULSE_SOURCE?]"}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

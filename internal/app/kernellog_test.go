package app

import (
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestWhoseBoards: the kernel's log is that of this machine, but nodes of one model have the same
// PCI addresses.
func TestWhoseBoards(t *testing.T) {
	t.Setenv("NODE_NAME", "node7")
	for _, test := range []struct {
		name     string
		caps     source.Caps
		hostname string
		want     bool
	}{
		{"dcgm and nvml", source.Caps{Local: true}, "renamed", true},
		{"an exporter beside us", source.Caps{Host: "localhost:9400"}, "some-pod", true},
		{"an exporter at a loopback address", source.Caps{Host: "127.0.0.1"}, "", true},
		{"an exporter that says it is here", source.Caps{Host: "exporter.svc"}, "Node7", true},
		{"another node", source.Caps{Host: "node8"}, "node8", false},
		{"another node's host engine", source.Caps{Host: "node8"}, "", false},
		{"an exporter that does not know its name", source.Caps{Host: "10.0.0.8"}, "localhost", false},
	} {
		mine := isMine(test.caps)
		if got := mine(&canonical.Device{Hostname: test.hostname, UUID: "GPU-of-no-machine", PCIBusID: "ffff:fe:1f.7"}); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestKernelLogIsAFlagWithAndWithoutAValue(t *testing.T) {
	for _, test := range []struct {
		args []string
		env  string
		want string
	}{
		{nil, "", ""},
		{[]string{"--kernel-log"}, "", "/dev/kmsg"},
		{[]string{"--kernel-log", "--poll=5s"}, "", "/dev/kmsg"},
		{[]string{"--kernel-log=/run/kmsg"}, "", "/run/kmsg"},
		{[]string{"--kernel-log=false"}, "true", ""},
		{[]string{"--kernel-log", "/run/kmsg"}, "", "/run/kmsg"},
		{nil, "true", "/dev/kmsg"},
		{nil, "/run/kmsg", "/run/kmsg"},
	} {
		t.Setenv("KPULSE_KERNEL_LOG", test.env)
		o, err := parse(slices.Clone(test.args), t.Output())
		if err != nil || string(o.KernelLog) != test.want {
			t.Errorf("%q and %q: %v, %v, want %q", test.args, test.env, o.KernelLog, err, test.want)
		}
	}
}

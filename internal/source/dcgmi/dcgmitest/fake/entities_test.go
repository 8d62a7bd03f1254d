package fake

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

func TestEntityLists(t *testing.T) {
	s := dcgmitest.Scenario{GPUs: dcgmitest.Boards(3), Switches: 4, CPUs: 2, ConnectX: 1}
	s.GPUs[1] = s.GPUs[1].Cut(2)
	f := &fake{scenario: s, release: s.Release()}
	for _, test := range []struct {
		list, want string // entities, or what is said
	}{
		{"2,0", "GPU 0,GPU 2"},
		{"0,gpu:0,0", "GPU 0"},
		{"{0-2}", "GPU 0,GPU 1,GPU 2"},
		{"*", "GPU 0,GPU 1,GPU 2"},
		{"*/*", "GPU-I 7,GPU-I 8"},
		{"*/*/*", "GPU-CI 7,GPU-CI 8"},
		{"1/*", "GPU-I 7,GPU-I 8"},
		{"1/8", "GPU-I 8"},
		{"1/8/0", "GPU-CI 8"},
		{"0/*", ""},
		{"i:7,compute_instance:8", "GPU-I 7,GPU-CI 8"},
		{"nvswitch:{1-2},cpu:0,core:5,cx:0", "Switch 1,Switch 2,CPU 0,CPU Core 5,CX 0"},
		{s.GPUs[2].UUID, "GPU 2"},
		{s.GPUs[1].Instances[1].UUID, "GPU-I 8"},
		{s.GPUs[1].UUID + "/7", "GPU-I 7"},
		{"gpu_link:0:5,switch_link:1:2", "GPU 0 LINK 5,SW 1 LINK 2"},
		{"3", "Error: Got error -1 Bad parameter passed to function while adding GPU 3 to our entity group."},
		{"n:4", "Error: Got error -1 Bad parameter passed to function while adding Switch 4 to our entity group."},
		{"{0", "A malformed range was specified: {0"},
		{"GPU-x", "Error: Expected numerical entityId instead of GPU-x"},
	} {
		entities, _, got := f.group(map[string]string{"entity-id": test.list})
		if got == "" {
			names := make([]string, len(entities))
			for i, e := range entities {
				names[i] = e.String()
			}
			got = strings.Join(names, ",")
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.list, got, test.want)
		}
	}
}

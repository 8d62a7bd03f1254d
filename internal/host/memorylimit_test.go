package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryLimit: limits as the kernel writes them, nested, and inside a container with and without
// a cgroup namespace.
func TestMemoryLimit(t *testing.T) {
	for name, test := range map[string]struct {
		cgroup string
		files  string // PATH=TEXT
		want   int64
	}{
		"of a service":                    {"0::/system.slice/kpulse.service", "system.slice/kpulse.service/memory.max=104857600", 104857600},
		"the parent is tighter":           {"0::/a/b", "a/b/memory.max=300 a/memory.max=200", 200},
		"the child is tighter":            {"0::/a/b", "a/b/memory.max=100 a/memory.max=200", 100},
		"none":                            {"0::/a", "a/memory.max=max", 0},
		"none but around it":              {"0::/a/b", "a/b/memory.max=max a/memory.max=200", 200},
		"a namespace":                     {"0::/", "memory.max=128", 128},
		"a container without namespace":   {"0::/kubepods/pod1/c", "memory.max=64", 64},
		"above the namespace":             {"0::/../../other", "memory.max=64", 64},
		"beside controllers of version 1": {"8:pids:/\n0::/a", "a/memory.max=512", 512},
		"what is not a number":            {"0::/a", "a/memory.max=lots", 0},
		"no file, as of the root cgroup":  {"0::/", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(name, text string) {
				name = filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/self/cgroup", test.cgroup)
			for _, file := range strings.Fields(test.files) {
				name, text, _ := strings.Cut(file, "=")
				write(filepath.Join("sys/fs/cgroup", name), text)
			}
			if got := MemoryLimit(root); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	if got := MemoryLimit(t.TempDir()); got != 0 {
		t.Errorf("without procfs: %d", got)
	}
}

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryLimit: limits as the kernel writes them in both versions, nested, and inside a
// container with and without a cgroup namespace.
func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "31 23 0:28 %s %s/fs rw,relatime - cgroup2 cgroup2 rw", "31 23 0:28 %s %s/fs rw,relatime - cgroup cgroup rw,memory"
	for name, test := range map[string]struct {
		cgroup, mount, root string
		files               string // PATH=TEXT
		want                int64
	}{
		"version 2":                      {"0::/system.slice/kpulse.service", v2, "/", "system.slice/kpulse.service/memory.max=104857600", 104857600},
		"the parent is tighter":          {"0::/a/b", v2, "/", "a/b/memory.max=300 a/memory.max=200", 200},
		"the child is tighter":           {"0::/a/b", v2, "/", "a/b/memory.max=100 a/memory.max=200", 100},
		"none":                           {"0::/a", v2, "/", "a/memory.max=max", 0},
		"none but around it":             {"0::/a/b", v2, "/", "a/b/memory.max=max a/memory.max=200", 200},
		"a namespace":                    {"0::/", v2, "/", "memory.max=128", 128},
		"a container without namespace":  {"0::/kubepods/pod1/c", v2, "/kubepods/pod1/c", "memory.max=64", 64},
		"outside of what is mounted":     {"0::/other", v2, "/kubepods/pod1/c", "memory.max=64", 64},
		"above the namespace":            {"0::/../../other", v2, "/", "memory.max=64", 64},
		"version 1":                      {"4:memory:/docker/c\n0::/", v1, "/", "docker/c/memory.limit_in_bytes=512 memory.limit_in_bytes=9223372036854771712", 512},
		"version 1 in a container":       {"4:memory:/docker/c", v1, "/docker/c", "memory.limit_in_bytes=512", 512},
		"version 1 without":              {"4:memory:/docker/c", v1, "/", "docker/c/memory.limit_in_bytes=9223372036854771712", 0},
		"version 1 with 64 KB pages":     {"4:memory:/", v1, "/", "memory.limit_in_bytes=9223372036854710272", 0},
		"version 1, other controllers":   {"3:cpu,cpuacct:/a", v1, "/", "a/memory.limit_in_bytes=512", 0},
		"version 2's file in version 1":  {"4:memory:/a", v1, "/", "a/memory.max=512", 0},
		"what is not a number":           {"0::/a", v2, "/", "a/memory.max=lots", 0},
		"no file, as of the root cgroup": {"0::/", v2, "/", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				name = filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/7/cgroup", "8:pids:/\n"+test.cgroup)
			write("proc/7/mountinfo", "22 20 0:20 / /proc rw - proc proc rw\n"+fmt.Sprintf(test.mount, test.root, dir))
			if err := os.Symlink("7", filepath.Join(dir, "proc", "self")); err != nil {
				t.Fatal(err)
			}
			for _, file := range strings.Fields(test.files) {
				name, text, _ := strings.Cut(file, "=")
				write(filepath.Join("fs", name), text)
			}
			if got := MemoryLimit(filepath.Join(dir, "proc")); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	if got := MemoryLimit(t.TempDir()); got != 0 {
		t.Errorf("without procfs: %d", got)
	}
}

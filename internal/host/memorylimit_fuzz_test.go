package host

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzMemoryLimit: whatever cgroup and mount the kernel tells of, the limit is one that a file of the
// mounted hierarchy has, never one beside it, and a cgroup below has it too.
func FuzzMemoryLimit(f *testing.F) {
	for _, row := range [][5]string{
		{"0::/kubepods.slice/pod1", "/", "cgroup2 cgroup2 rw", "104857600\n", "max\n"},
		{"8:pids:/\n4:memory:/a/b", "/", "cgroup cgroup rw,memory", "512", "9223372036854771712\n"},
		{"0::/a/b", "/a", "cgroup2 none rw", "+7", "-1"},
		{"0::/../../other", "/kubepods/pod1/c", "cgroup2 cgroup2 rw,nsdelegate", "0", "1_0"},
		{"3:cpu,memory:/..\n0::/", "/..", "cgroup cgroup rw,cpu,memory", "\t18446744073709551616", "0x10"},
		{"0::/a:b/c", "a", "cgroup2 cgroup2", "\u20641", ""},
	} {
		f.Add(row[0], row[1], row[2], row[3], row[4])
	}
	dir := f.TempDir()
	m := machine{f, dir}
	m.write("7/uptime", "") // for the folder
	if err := os.Symlink("7", filepath.Join(dir, "self")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cgroup, root, kind, outer, inner string) {
		if strings.ContainsAny(root, " \r\n") || strings.ContainsAny(kind, "\r\n") {
			t.Skip("they would mount another folder")
		}
		m := machine{t, dir}
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			m.write(file, "77")
			m.write("fs/"+file, outer)
			m.write("fs/a/"+file, inner)
			m.write("fs/a/b/"+file, "4096")
		}
		m.write("7/mountinfo", fmt.Sprintf("31 23 0:28 %s %s/fs rw,relatime - %s\n", root, dir, kind))
		limit := func(cgroup string) int64 {
			m.write("7/cgroup", cgroup)
			return MemoryLimit(dir)
		}
		got := limit(cgroup)
		if got < 0 || got >= unlimited {
			t.Errorf("%q limits to %d", cgroup, got)
		}
		found := got == 0 || got == 4096
		for _, text := range []string{outer, inner} {
			n, ok := new(big.Int).SetString(strings.TrimSpace(text), 10)
			found = found || ok && n.Cmp(big.NewInt(got)) == 0
		}
		if !found {
			t.Errorf("%q at %q of %q has a limit of %d, which is in none of %q, %q", cgroup, root, kind, got, outer, inner)
		}
		if strings.HasSuffix(cgroup, "\n") || strings.Contains(cgroup, "\r") {
			return
		}
		if below := limit(cgroup + "/new"); below != got {
			t.Errorf("%q at %q of %q has a limit of %d, and a cgroup below it of %d", cgroup, root, kind, got, below)
		}
	})
}

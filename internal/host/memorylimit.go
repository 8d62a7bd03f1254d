package host

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// unlimited is the value from which on a limit of cgroup v1 is no limit: for none the kernel
// writes the largest number of bytes in whole pages.
const unlimited = math.MaxInt64 - 1<<20

// MemoryLimit returns the lowest memory limit, in bytes, of the cgroup of this process and of
// those around it, if visible; 0 if there is none. proc is where procfs is mounted, which also
// tells where the cgroups are.
func MemoryLimit(proc string) int64 {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0
	}
	self, err := fs.Self()
	if err != nil {
		return 0
	}
	groups, err := self.Cgroups()
	if err != nil {
		return 0
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return 0
	}
	var least int64
	for i := range groups {
		file := memoryFile(&groups[i])
		for _, m := range mounts {
			if file == "" || !holdsMemory(m, &groups[i]) {
				continue
			}
			if limit := limitWithin(m.MountPoint, below(m, groups[i].Path), file); limit > 0 && (least == 0 || limit < least) {
				least = limit
			}
			break
		}
	}
	return least
}

// memoryFile is the name of the file with the limit, "" for a hierarchy without one.
func memoryFile(g *procfs.Cgroup) string {
	switch {
	case len(g.Controllers) == 0:
		return "memory.max" // version 2
	case slices.Contains(g.Controllers, "memory"):
		return "memory.limit_in_bytes"
	}
	return ""
}

// holdsMemory reports whether m is the hierarchy of g.
func holdsMemory(m *procfs.MountInfo, g *procfs.Cgroup) bool {
	if len(g.Controllers) == 0 {
		return m.FSType == "cgroup2"
	}
	_, memory := m.SuperOptions["memory"]
	return m.FSType == "cgroup" && memory
}

// below is where a cgroup is below its mount point. A container without a namespace of
// cgroups is told its path on the node, which is the root of what it has mounted.
func below(m *procfs.MountInfo, path string) string {
	relative, err := filepath.Rel(m.Root, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return "."
	}
	return relative
}

// limitWithin returns the least limit of a cgroup and those around it up to the mount point,
// 0 for none.
func limitWithin(mount, below, file string) (least int64) {
	for {
		text, _ := os.ReadFile(filepath.Join(mount, below, file)) // the root has none
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && limit < unlimited && (least == 0 || limit < least) {
			least = limit
		}
		if below == "." {
			return least
		}
		below = filepath.Dir(below)
	}
}

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

// unlimited is the least value in bytes that means no limit in cgroup v1: for none the
// kernel writes the largest number of bytes in whole pages.
const unlimited = math.MaxInt64 - 1<<20

// MemoryLimit returns the lowest memory limit, in bytes, of this process's cgroup and its
// visible ancestors; 0 if there is none. proc is the mount point of procfs, which also
// tells where the cgroups are.
func MemoryLimit(proc string) (least int64) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0
	}
	self, err := fs.Self()
	if err != nil {
		return 0
	}
	groups, _ := self.Cgroups()
	mounts, _ := self.MountInfo()
	for _, m := range mounts {
		_, memory := m.SuperOptions["memory"]
		for _, g := range groups {
			limit := int64(0)
			switch {
			case m.FSType == "cgroup2" && len(g.Controllers) == 0:
				limit = limitWithin(m.MountPoint, below(m, g.Path), "memory.max")
			case m.FSType == "cgroup" && memory && slices.Contains(g.Controllers, "memory"):
				limit = limitWithin(m.MountPoint, below(m, g.Path), "memory.limit_in_bytes")
			}
			least = lower(least, limit)
		}
	}
	return least
}

// lower returns the lower of two limits, of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// below returns the path of a cgroup below its mount point. A container without a cgroup
// namespace sees the path on the node, which is the root of its mount.
func below(m *procfs.MountInfo, path string) string {
	relative, err := filepath.Rel(m.Root, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return "."
	}
	return relative
}

// limitWithin returns the lowest limit of a cgroup and its ancestors up to the mount point,
// 0 for none.
func limitWithin(mount, below, file string) (least int64) {
	for {
		text, _ := os.ReadFile(filepath.Join(mount, below, file)) // missing for the root
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && limit < unlimited {
			least = lower(least, limit)
		}
		if below == "." {
			return least
		}
		below = filepath.Dir(below)
	}
}

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

// memoryFile returns the name of the file with the limit, "" for a hierarchy without one.
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
		if err == nil && limit > 0 && limit < unlimited && (least == 0 || limit < least) {
			least = limit
		}
		if below == "." {
			return least
		}
		below = filepath.Dir(below)
	}
}

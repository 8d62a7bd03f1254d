package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryLimit returns the lowest memory limit, in bytes, of this process's cgroup (version 2) and its
// visible ancestors; 0 if there is none. root is the root of the file system.
func MemoryLimit(root string) (least int64) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	_, own, _ := strings.Cut(string(text), "0::")
	own, _, _ = strings.Cut(own, "\n")
	// A container without a cgroup namespace sees its path on the node, which is the root of its mount.
	for dir := filepath.Join("/", own); ; dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", dir, "memory.max")) // the node's root has none
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
		if dir == "/" {
			return least
		}
	}
}

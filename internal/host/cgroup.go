package host

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// owner finds the UID of a pod, whose hyphens systemd's names have as underscores, or the id of a Slurm job in the path of a
// control group. Groups of a user, who may name them, are found first and have neither.
var owner = regexp.MustCompile(`/user\.slice/|[/-]pod([[:xdigit:]]{8}(?:[-_][[:xdigit:]]{4}){3}[-_][[:xdigit:]]{12})|/[^/]*slurm[^/]*(?:/uid_\d+)?/job_(\d+)(?:/|$)`)

// OwnerOf returns the UID of the pod, or the job, whose control group a process is in; "" for none, or if it is gone.
func OwnerOf(proc string, pid int) (podUID, job string) {
	groups, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	for line := range strings.Lines(string(groups)) {
		if found := owner.FindStringSubmatch(strings.TrimSpace(line)); found != nil && found[1]+found[2] != "" {
			return strings.ReplaceAll(found[1], "_", "-"), found[2]
		}
	}
	return "", ""
}

package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOwnerOf(t *testing.T) {
	const uid = "aaaaaaaa-0000-4000-8000-00000000000f"
	proc := t.TempDir()
	for name, c := range map[string]struct{ text, pod, job string }{
		"systemd":          {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaaaaaaaa_0000_4000_8000_00000000000f.slice/cri-containerd-0123.scope\n", uid, ""},
		"cgroupfs":         {"12:pids:/\n4:memory:/kubepods/besteffort/pod" + uid + "/0123\n0::/\n", uid, ""},
		"slurm, version 2": {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "", "4711"},
		"slurm, version 1": {"9:devices:/slurm/uid_1000/job_12/step_batch\n", "", "12"},
		"a job's end":      {"0::/slurm/job_4711\n", "", "4711"},
		"a user's session": {"0::/user.slice/user-1000.slice/session-3.scope\n", "", ""},
		"another's job":    {"0::/system.slice/job_backup.service\n0::/slurm/job_12a/y\n0::/user.slice/batch/job_12/y\n", "", ""},
		"a name of a user": {"0::/user.slice/user-1000.slice/user@1000.service/slurm/job_12\n", "", ""},
		"ssh into a job":   {"12:pids:/user.slice/user-1000.slice/session-3.scope\n9:devices:/slurm/uid_1000/job_12/step_extern\n", "", "12"},
		"systemd in a pod": {"0::/kubepods/pod" + uid + "/user.slice/job\n", uid, ""},
		"a short uid":      {"0::/kubepods/podaaaaaaaa/0123\n", "", ""},
	} {
		dir := filepath.Join(proc, "7")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if pod, job := OwnerOf(proc, 7); pod != c.pod || job != c.job {
			t.Errorf("%s: %q, %q, want %q, %q", name, pod, job, c.pod, c.job)
		}
	}
	if pod, job := OwnerOf(proc, 8); pod != "" || job != "" {
		t.Error("a process that is gone")
	}
}

//go:build linux

package dcgm

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smi is a fake nvidia-smi: a script that prints files.
type smi struct {
	t   *testing.T
	exe string
}

// newSMI returns an smi that answers every query with nothing.
func newSMI(t *testing.T) *smi {
	t.Helper()
	f := &smi{t, filepath.Join(t.TempDir(), "nvidia-smi")}
	f.write(f.exe, `#!/bin/sh
case $1 in
-L) what=list ;;
-q) what=report ;;
nvlink) [ "$*" = "nvlink -s" ] && what=links ;;
esac
[ -e $0.hangs ] && exec sleep 1000
cat $0.$what 2>/dev/null
exit 0
`)
	return f
}

// says sets the answer to one of list, report and links.
func (f *smi) says(what, text string) { f.write(f.exe+"."+what, text) }

func (f *smi) write(path, text string) {
	f.t.Helper()
	next := path + ".next"
	// A child forked meanwhile would keep the script open: see dcgmtest.Build.
	syscall.ForkLock.RLock()
	err := os.WriteFile(next, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		f.t.Fatal(err)
	}
}

// install makes a source find it.
func (f *smi) install(o *Options) {
	find := o.lookPath
	o.lookPath = func(name string) (string, error) {
		if name == "nvidia-smi" {
			return f.exe, nil
		}
		return find(name)
	}
}

// Two boards, one of them with two MIG instances.
const (
	smiList = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n" +
		"GPU 1: NVIDIA H100 80GB HBM3 (UUID: " + uuid1 + ")\n" +
		"  MIG 3g.40gb     Device  0: (UUID: MIG-00000000-0001-1111-2222-333344445550)\n" +
		"  MIG 1g.10gb     Device  1: (UUID: MIG-00000001-0001-1111-2222-333344445550)\n"
	smiLinks = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n" +
		"GPU 1: NVIDIA H100 80GB HBM3 (UUID: " + uuid1 + ")\n\t Link 0: <inactive>\n\t Link 1: 26.562 GB/s\n"
	smiReport = `<?xml version="1.0" ?><nvidia_smi_log><gpu id="00000000:20:00.0"><uuid>` + uuid1 + `</uuid><mig_devices>
<mig_device><index>0</index><gpu_instance_id>7</gpu_instance_id></mig_device>
<mig_device><index>1</index><gpu_instance_id>8</gpu_instance_id></mig_device>
</mig_devices></gpu></nvidia_smi_log>`
)

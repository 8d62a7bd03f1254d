package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// The rows of an exporter's page about each GPU of a healthy, busy node.
var healthyRows = map[string]string{
	"GPU_TEMP": "40", "SM_CLOCK": "1980", "POWER_USAGE": "300", "TOTAL_ENERGY_CONSUMPTION": "5000000", "GPU_UTIL": "50",
	"PCIE_REPLAY_COUNTER": "0", "ROW_REMAP_FAILURE": "0", "UNCORRECTABLE_REMAPPED_ROWS": "0", "XID_ERRORS": "0",
}

// uuids begins the UUIDs of a node's GPUs, which end in their indexes.
const uuids = "GPU-b2000000-7b12-4c3e-8d24-1c8d7f602b0"

// gpusPage returns an exporter's page about n GPUs, whose indexes are in order of their PCI addresses
// 10, 18, 20 and so on. A change is GPU:FIELD=VALUE; GPU:- leaves a GPU out, GPU:0 makes all of its rows 0,
// and GPU:links=N adds its 18 NVLinks, of which N are up.
func gpusPage(n int, labels string, changes ...string) string {
	var page strings.Builder
	for gpu := range n {
		id := fmt.Sprintf(`gpu="%d",UUID="%s%d"`, gpu, uuids, gpu)
		board := fmt.Sprintf(`%s,pci_bus_id="00000000:%02X:00.0",device="nvidia%d",modelName="NVIDIA B200",Hostname="n1"%s`, id, 0x10+8*gpu, gpu, labels)
		rows, out := maps.Clone(healthyRows), false
		for _, change := range changes {
			which, what, _ := strings.Cut(change, ":")
			field, value, has := strings.Cut(what, "=")
			switch {
			case which != fmt.Sprint(gpu):
			case what == "-":
				out = true
			case field == "links":
				for link := range 18 {
					up := map[bool]int{true: 1}[value == "18"]
					fmt.Fprintf(&page, "DCGM_FI_DEV_NVLINK_GET_STATE{%s,nvlink=\"%d\",Hostname=\"n1\"} %d\n", id, link, up)
				}
			case has:
				rows[field] = value
			default:
				for field := range rows {
					rows[field] = what
				}
			}
		}
		for _, field := range slices.Sorted(maps.Keys(rows)) {
			if !out {
				fmt.Fprintf(&page, "DCGM_FI_DEV_%s{%s} %s\n", field, board, rows[field])
			}
		}
	}
	return page.String()
}

// slurmdNode is a proxy in front of an exporter, with the scripts for Slurm, whose scontrol is a fake.
type slurmdNode struct {
	body    atomic.Pointer[string]
	scripts jobScript
	flags   []string
	proxy   *child
}

func newSlurmdNode(t *testing.T, flags ...string) *slurmdNode {
	t.Helper()
	n := &slurmdNode{scripts: newJobScript(t, map[string]string{
		"scontrol": `case $1 in show) printf '   State=%s\n   Reason=%s\n' "$STATE" "$REASON" ;; *) shift; echo "$*" >>"$D/asked" ;; esac`,
	})}
	up := startUpstream(func() ([]byte, error) { return []byte(*n.body.Load()), nil })
	t.Cleanup(up.stop)
	n.body.Store(new(string))
	n.flags = append([]string{"--source=" + up.url + "/metrics", "--source.min-interval=0s", "--poll=0"}, flags...)
	return n
}

// read makes the proxy, which is started for the first, read pages, one after the other.
func (n *slurmdNode) read(t *testing.T, pages ...string) {
	t.Helper()
	for _, text := range pages {
		n.body.Store(&text)
		if n.proxy == nil {
			n.proxy = startProxy(t, itself(t), n.flags...)
		}
		if status, body := page(t, n.proxy, "/metrics"); status != http.StatusOK {
			t.Fatal(body)
		}
	}
}

// run runs a script with scontrol's answer, and returns its exit code and what it asked scontrol to do.
func (n *slurmdNode) run(t *testing.T, script, url string, environ ...string) (code int, asked string) {
	t.Helper()
	if err := os.RemoveAll(n.scripts.dir + "/asked"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "../../deploy/slurm/"+script)
	cmd.Env = append(jobOn("1", "0,1,2", "PATH="+n.scripts.dir+"/bin:"+os.Getenv("PATH"), "D="+n.scripts.dir, "SLURMD_NODENAME=n1", "KPULSE_URL="+url), environ...)
	_, _ = cmd.CombinedOutput() // its exit code is the caller's
	text, _ := os.ReadFile(n.scripts.dir + "/asked")
	return cmd.ProcessState.ExitCode(), string(text)
}

// want checks the answer of check health, and what the scripts make of it: on 2 they drain the node with
// the reason, on 0 a drained node is resumed, and else they do nothing.
func (n *slurmdNode) want(t *testing.T, what string, exit int, first string) {
	t.Helper()
	n.wantAt(t, what, n.proxy.URL, exit, first)
}

func (n *slurmdNode) wantAt(t *testing.T, what, url string, exit int, first string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), itself(t), "check", "health", "--url="+url)
	answer, _ := cmd.Output() // it logs why not, too
	if code := cmd.ProcessState.ExitCode(); code != exit || !regexp.MustCompile(first).Match(answer) {
		t.Errorf("%s: check health exits with %d, want %d and %s:\n%s", what, code, exit, first, answer)
		return
	}
	drains, resumes, fails := "", "", 0
	if exit == 2 {
		line, _, _ := strings.Cut(string(answer), "\n")
		drains, fails = "NodeName=n1 State=DRAIN Reason=kpulse-proxy: "+strings.TrimPrefix(line, "CRITICAL - ")+"\n", 1
	} else if exit == 0 {
		resumes = "NodeName=n1 State=RESUME\n"
	}
	for _, call := range []struct {
		name, script, environ, asked string
		code                         int
	}{
		{"the health check of an idle node", "kpulse-healthcheck", "STATE=IDLE", drains, 0},
		{"the health check of a node that it drained", "kpulse-healthcheck", "STATE=IDLE+DRAIN", resumes, 0},
		{"the prolog", "kpulse-prolog", "STATE=IDLE", drains, fails},
	} {
		code, asked := n.run(t, call.script, url, call.environ, "REASON=kpulse-proxy: GPU 1: it fell", "KPULSE_RESUME=1")
		if code != call.code || asked != call.asked {
			t.Errorf("%s: %s exits with %d and asks %q, want %d and %q", what, call.name, code, asked, call.code, call.asked)
		}
	}
}

// TestNodesAreDrained plays pages that went wrong on clusters, through the program and Slurm's scripts.
func TestNodesAreDrained(t *testing.T) {
	t.Parallel()
	well := gpusPage(3, "")
	held := func(n int, changes ...string) string { return gpusPage(n, `,vgpu=""`, changes...) }
	links := func(n string) []string { // of the third of eight
		changes := []string{"2:links=" + n}
		for _, gpu := range []string{"0", "1", "3", "4", "5", "6", "7"} {
			changes = append(changes, gpu+":links=18")
		}
		return changes
	}
	for _, c := range []struct {
		name  string
		pages []string
		exit  int
		first string
	}{
		{"a healthy node", []string{well}, 0, "^OK - 3 GPUs\n"},
		{"a row that was repaired long ago", []string{gpusPage(3, "", "0:UNCORRECTABLE_REMAPPED_ROWS=1")}, 0, "^OK - "},
		{"a row that is repaired now", []string{well, gpusPage(3, "", "0:UNCORRECTABLE_REMAPPED_ROWS=1")}, 1, "^WARNING - check_hardware GPU 0: uncorrectable rows remapped 1\n"},
		{"512 repaired rows", []string{gpusPage(3, "", "0:UNCORRECTABLE_REMAPPED_ROWS=512")}, 2, "^CRITICAL - replace GPU 0: uncorrectable rows remapped 512\n"},
		{"a row that could not be repaired", []string{gpusPage(3, "", "1:ROW_REMAP_FAILURE=1")}, 2, "^CRITICAL - replace GPU 1: row remap failed\n"},
		{"one replay", []string{well, gpusPage(3, "", "0:PCIE_REPLAY_COUNTER=1")}, 0, "^OK - "},
		{"nine replays at once", []string{well, gpusPage(3, "", "0:PCIE_REPLAY_COUNTER=9")}, 1, "^WARNING - check_hardware GPU 0: PCIe replays"},
		{"a page without one GPU", []string{well, gpusPage(3, "", "1:-")}, 3, "^UNKNOWN - GPU 1: it is missing from the latest reading"},
		{"a page without one GPU, and then with it", []string{well, gpusPage(3, "", "1:-"), well}, 0, "^OK - 3 GPUs\n"},
		{"rows for held GPUs only, and a pod ends", []string{held(3), held(3, "2:-")}, 0, "^OK - 2 GPUs\n"},
		{"a page of zeros", []string{gpusPage(1, "", "0:0")}, 3, "^UNKNOWN - GPU 0: no reading decides it\n"},
		{"all links of one of eight down from boot", []string{gpusPage(8, "", links("0")...), gpusPage(8, "", links("0")...), gpusPage(8, "", links("0")...)}, 2,
			"^CRITICAL - reset_gpu GPU 2: NVLink down\n"},
		{"all links up", []string{gpusPage(8, "", links("18")...), gpusPage(8, "", links("18")...), gpusPage(8, "", links("18")...)}, 0, "^OK - 8 GPUs\n"},
		{"a fatal XID", []string{well, gpusPage(3, "", "1:XID_ERRORS=95")}, 2, "^CRITICAL - reset_gpu GPU 1: fatal XID 95 ROBUST_CHANNEL_UNCONTAINED_ERROR\n"},
		{"an XID of an application", []string{well, gpusPage(3, "", "1:XID_ERRORS=31")}, 0, "^OK - "},
		{"an exporter that finds no GPU", []string{"# nothing\n"}, 3, "^UNKNOWN - "},
		{"45 after a fatal XID", []string{well, gpusPage(3, "", "1:XID_ERRORS=95"), gpusPage(3, "", "1:XID_ERRORS=45"), well}, 2, "^CRITICAL - reset_gpu GPU 1: fatal XID 95 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newSlurmdNode(t)
			n.read(t, c.pages...)
			n.want(t, c.name, c.exit, c.first)
		})
	}
}

// TestFatalCodesStay through one odd page and a restart, and are resolved by a reset.
func TestFatalCodesStay(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state.json")
	n := newSlurmdNode(t, "--state.file="+state)
	const fatal = "^CRITICAL - reset_gpu GPU 1: fatal XID 95 ROBUST_CHANNEL_UNCONTAINED_ERROR\n"
	after := gpusPage(3, "", "1:XID_ERRORS=45", "1:TOTAL_ENERGY_CONSUMPTION=5001000")
	n.read(t, gpusPage(3, ""), gpusPage(3, "", "1:XID_ERRORS=95"), after)
	n.want(t, "45 after it", 2, fatal)
	for what, odd := range map[string]string{
		"a page of zeros": gpusPage(3, "", "1:0"), "a page without it": gpusPage(3, "", "1:-"), "energy 0 once": gpusPage(3, "", "1:TOTAL_ENERGY_CONSUMPTION=0"),
	} {
		n.read(t, odd, after)
		n.want(t, what, 2, fatal)
		n.read(t, odd, odd) // a slow exporter's, read twice
		n.want(t, what+", read twice", 2, "fatal XID 95 ")
		n.read(t, after)
		n.want(t, what+", and then well", 2, fatal)
	}
	n.again(t, after)
	n.want(t, "a restart of the proxy", 2, fatal)
	n.read(t, gpusPage(3, "", "1:TOTAL_ENERGY_CONSUMPTION=0"), after)
	n.want(t, "energy 0 once after that", 2, fatal)
	reset := gpusPage(3, "", "1:TOTAL_ENERGY_CONSUMPTION=70")
	n.read(t, reset, reset)
	n.want(t, "a reset", 0, "^OK - 3 GPUs\n")
	n.again(t, reset)
	n.want(t, "a restart after the reset", 0, "^OK - 3 GPUs\n")
	n.read(t, gpusPage(3, "", "1:XID_ERRORS=79", "1:TOTAL_ENERGY_CONSUMPTION=90000"))
	n.want(t, "79", 2, "^CRITICAL - reboot_node GPU 1: fatal XID 79 ROBUST")
	n.again(t, reset)
	n.read(t, reset)
	n.want(t, "a reboot in which the proxy was not there", 0, "^OK - 3 GPUs\n")
}

// again starts the proxy anew and makes it read a page.
func (n *slurmdNode) again(t *testing.T, text string) {
	t.Helper()
	if err := n.proxy.Stop(); err != nil {
		t.Fatal(err)
	}
	n.proxy = nil
	n.read(t, text)
}

// TestWhatIsResolvedStaysResolved over a restart of the proxy, although the exporter still shows the code and the log
// has the record. Only root may resolve, or anyone with --web.enable-lifecycle.
func TestWhatIsResolvedStaysResolved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kmsg") // a file, which is read again at each start
	n := newSlurmdNode(t, "--state.file="+filepath.Join(dir, "state.json"), "--kernel-log="+path)
	command(t, "touch", path)
	fatal := gpusPage(2, "", "1:XID_ERRORS=95")
	if n.read(t, gpusPage(2, ""), fatal); os.Getuid() != 0 {
		if status, answer := post(t, n.proxy, "/-/resolve?uuid="+uuids+"1"); status != http.StatusForbidden {
			t.Errorf("%d %s", status, answer)
		}
		n.flags = append(n.flags, "--web.enable-lifecycle")
	}
	n.again(t, fatal)
	n.want(t, "a restart", 2, "^CRITICAL - reset_gpu GPU 1: fatal XID 95 ")
	command(t, "sh", "-c", `read up rest </proc/uptime; printf '4,1,%s,-;nvidia-nvswitch0: SXid (PCI:0000:03:00.0): 20034, Fatal, Link 27\n' ${up%.*}000000 >>`+path)
	awaitTrue(t, "the SXID is read", func() bool {
		page(t, n.proxy, "/metrics")
		return slices.ContainsFunc(eventsOf(t, n.proxy), func(e event) bool { return e.SXID == 20034 })
	})
	n.want(t, "a fatal SXID", 2, "fatal SXID 20034 of NVSwitch 0000:03:00")
	n.again(t, fatal)
	n.want(t, "a restart with both", 2, "fatal SXID 20034 of NVSwitch 0000:03:00")
	for _, what := range []string{"uuid=" + uuids + "1", "switch=0000:03:00.0"} {
		if status, answer := post(t, n.proxy, "/-/resolve?"+what); status != http.StatusOK || !strings.Contains(answer, "are resolved") {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	n.read(t, fatal)
	n.want(t, "resolved", 0, "^OK - 2 GPUs\n")
	for range 2 {
		n.again(t, fatal)
		awaitTrue(t, "the log is read again", func() bool {
			_, own := page(t, n.proxy, "/-/metrics")
			return strings.Contains(own, `kpulse_proxy_kernel_log_records_total{result="sxid"} 1`)
		})
		n.read(t, fatal)
		n.want(t, "resolved, and a restart", 0, "^OK - 2 GPUs\n")
	}
	n.read(t, gpusPage(2, "", "1:XID_ERRORS=79"))
	n.want(t, "another code", 2, "^CRITICAL - reboot_node GPU 1: fatal XID 79 ")
}

// TestRecordsThatDrain: records of the kernel's log, in the forms of /dev/kmsg, syslog and dmesg.
func TestRecordsThatDrain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, log string
		events    int
		exit      int
		first     string
	}{
		{"off the bus at probe", kmsg(`NVRM: The NVIDIA GPU 0000:10:00.0\x0aNVRM: (PCI ID: 10de:2901) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.`),
			1, 2, `^CRITICAL - reboot_node GPU 0: fatal XID 79 \w+ \(fallen off the bus\)\n`},
		{"off the bus without an Xid", kmsg("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."), 1, 2, `^CRITICAL - reboot_node GPU 1: fatal XID 79 `},
		{"an SXID that is not fatal", kmsg("nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 43 Minion Link DLREQ interrupt"), 1, 0, "^OK - "},
		{"a fatal SXID", kmsg("nvidia-nvswitch0: SXid (PCI:0000:03:00.0): 20034, Fatal, Link 27 LTSSM Fault Up"), 1, 2, "^CRITICAL - reboot_node NVSwitch 0000:03:00: fatal SXID 20034\ncrit +NVSwitch 0000:03:00 "},
		{"149 that is fatal by its sub-code", kmsg("NVRM: Xid (PCI:0000:20:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"),
			1, 2, `^CRITICAL - reset_gpu GPU 2: fatal XID 149 NVLINK_NETIR_ERROR \(NETIR_LINK_EVT Fatal XC0 i0 Link 08\)\n`},
		{"syslog", "Jul 25 16:46:04 n1 kernel: [91134.101988] NVRM: Xid (PCI:0000:10:00): 119, pid='<unknown>', name=<unknown>, Timeout waiting for RPC from GSP!\n",
			1, 2, "^CRITICAL - reset_gpu GPU 0: fatal XID 119 GSP_RPC_TIMEOUT "},
		{"dmesg", "[ 1843.308145] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n", 1, 2, "^CRITICAL - reboot_node GPU 1: fatal XID 79 "},
		{"a failed assertion", kmsg("NVRM: GPU2 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status 0000:20:00 kernel_channel.c:2827"),
			1, 0, "^OK - "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, write := kernelLog(t)
			n := newSlurmdNode(t, "--kernel-log="+path)
			n.read(t, gpusPage(3, ""))
			write(c.log)
			awaitTrue(t, "the record is read", func() bool {
				page(t, n.proxy, "/metrics")
				return len(eventsOf(t, n.proxy)) >= c.events
			})
			n.want(t, c.name, c.exit, c.first)
			if _, body := page(t, n.proxy, "/metrics"); strings.Contains(c.log, "20034") && !regexp.MustCompile(`(?m)^kpulse_nvswitch_sxid_errors_total\{.*sxid="20034",severity="fatal"\} [01]$`).MatchString(body) {
				t.Error("the SXID has no severity")
			}
		})
	}
}

// TestForgedAnswers: whoever takes the port while the proxy is down neither drains nor resumes the node.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user, and doubts answers")
	}
	for what, text := range map[string]string{"all is well": gpusPage(3, ""), "a GPU is crit": gpusPage(3, "", "1:ROW_REMAP_FAILURE=1")} {
		n := newSlurmdNode(t)
		n.body.Store(&text)
		binary := filepath.Join(t.TempDir(), "kpulse-proxy")     // that another user may run
		program := cmp.Or(os.Getenv("KPULSE_BINARY"), itself(t)) // not a script that runs what others may not
		command(t, "cp", program, binary)
		command(t, "chmod", "755", binary)
		for dir := filepath.Dir(binary); dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err != nil || info.Mode()&1 == 0 && os.Chmod(dir, info.Mode()|1) != nil {
				t.Skip("another user cannot reach", dir)
			}
		}
		cmd := exec.Command(binary, append([]string{"--web.listen-address=127.0.0.1:0"}, n.flags...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 61234, Gid: 61234}}
		cmd.Dir = "/"
		c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop() })
		n.wantAt(t, what, c.URL, 3, "^UNKNOWN - the program that listens at 127.0.0.1:[0-9]+ runs as user id 61234, which is neither root nor the proxy's")
	}
}

// TestHoldersByHAMi: HAMi appends a number to the ids of shares; three GPUs have one holder.
func TestHoldersByHAMi(t *testing.T) {
	t.Parallel()
	kubelet := kubelettest.New(t)
	kubelet.Set(kubelettest.Pod("ml", "train-0", "nvidia.com/gpu", uuids+"0-17", uuids+"0-6", uuids+"1-1", uuids+"2-10"))
	n := newSlurmdNode(t, "--kube.pod-resources="+kubelet.Socket)
	n.read(t, gpusPage(3, ""))
	awaitTrue(t, "train-0 holds three GPUs", func() bool {
		_, body := page(t, n.proxy, "/metrics")
		held := regexp.MustCompile(`(?m)^kpulse_allocation_[a-z_]+\{.*uuid="(GPU-[^"]+)".*pod="train-0"`).FindAllStringSubmatch(body, -1)
		boards := map[string]bool{}
		for _, m := range held {
			boards[m[1]] = true
		}
		return len(boards) == 3
	})
}

// TestJobsByMinor: Slurm's numbers of GPUs are minors of their device files. On this node minor 0 is index 2.
func TestJobsByMinor(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skip("cannot make a mount namespace: ", err)
	}
	n := newSlurmdNode(t)
	n.read(t, gpusPage(3, "", "2:ROW_REMAP_FAILURE=1"))
	const inside = `set -e; mount -t tmpfs none /proc/driver; i=0
for minor in 1 2 0; do
 dir=/proc/driver/nvidia/gpus/0000:$(printf %02x $((16+8*i))):00.0; mkdir -p $dir
 printf 'GPU UUID: \t '$UUIDS'%s\nBus Location: \t %s\nDevice Minor: \t %s\n' $i ${dir##*/} $minor >$dir/information; i=$((i+1))
done
exec /bin/sh ../../deploy/slurm/kpulse-prolog`
	for gpus, want := range map[string]int{"0": 1, "1": 0, "2": 0, "0-1": 1} {
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-c", inside)
		cmd.Env = jobOn("1", gpus, "PATH="+n.scripts.dir+"/bin:"+os.Getenv("PATH"), "D="+n.scripts.dir, "KPULSE_URL="+n.proxy.URL, "STATE=IDLE", "REASON=", "UUIDS="+uuids)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("SLURM_JOB_GPUS=%s: the prolog exits with %d, want %d\n%s", gpus, code, want, out)
		}
	}
}

package holders

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// patience is how long a test waits for an event.
const patience = 2 * time.Minute

// logs is what was logged. Any goroutine may use it.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// run runs a Kubelet that asks often, until the test ends.
func run(t *testing.T, socket string, timeout time.Duration) (*Kubelet, *logs) {
	t.Helper()
	written := &logs{}
	k := NewKubelet(KubeletOptions{Socket: socket, Interval: 5 * time.Millisecond, Timeout: timeout, Logger: slog.New(slog.NewTextHandler(written, nil))})
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { k.Run(ctx); close(done) }()
	t.Cleanup(func() { end(); <-done })
	return k, written
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// names returns the pods of the current answer, in its order.
func (k *Kubelet) names() string {
	var names []string
	for _, h := range k.current.Load().holds {
		names = append(names, h.Pod)
	}
	return strings.Join(names, " ")
}

func TestKubeletIsAskedAgainAndAgain(t *testing.T) {
	server := kubelettest.New(t)
	server.Set(kubelettest.Pod("n", "p", "nvidia.com/gpu", idBoard), kubelettest.Pod("n", "x", "amd.com/gpu", "0"), &podresources.PodResources{Name: "empty"})
	k, _ := run(t, server.Socket, patience)
	await(t, "the pod", func() bool { return k.names() == "p" })
	server.Set(kubelettest.Pod("n", "q", "nvidia.com/gpu", idBoard+"::1", "x"), kubelettest.Pod("n", "p", "nvidia.com/gpu", idBoard+"::0"))
	await(t, "both, the known one first", func() bool { return k.names() == "p q" })
	if _, unmatched, unread := k.Devices(); unread != 1 || unmatched != 2 || k.Failed.Load() != 0 || k.Asked.Load() == 0 {
		t.Errorf("%d unmatched, %d unread, %d of %d failed", unmatched, unread, k.Failed.Load(), k.Asked.Load())
	}
	server.Set()
	await(t, "nobody", func() bool { return k.names() == "" })
	before := k.current.Load()
	asked := server.Asked.Load()
	await(t, "two more answers", func() bool { return server.Asked.Load() > asked+2 })
	if k.current.Load() != before {
		t.Error("an equal answer replaced the previous one")
	}
}

// TestLastAnswerHolds: a single failure keeps all pods.
func TestLastAnswerHolds(t *testing.T) {
	k := newBench(t, FeedOptions{})
	k.says("p=GPU-a")
	for range maxFailures - 1 {
		k.kubelet.fail(&canonical.Failure{Cause: "cause", Remedy: "remedy"})
	}
	notes := k.kubelet.Notes()
	if k.kubelet.names() != "p" || len(notes) != 1 || notes[0].Cause != "the pods are those of the kubelet's last answer: cause" || notes[0].Remedy != "remedy" {
		t.Errorf("pods %q, notes %q", k.kubelet.names(), notes)
	}
	k.kubelet.fail(&canonical.Failure{Cause: "cause", Remedy: "remedy"})
	if k.kubelet.names() != "" || k.kubelet.Notes()[0].Cause != "no pods from the kubelet: cause" {
		t.Errorf("pods %q, notes %q", k.kubelet.names(), k.kubelet.Notes())
	}
}

// TestWhyThereAreNoPods: each failure names its remedy.
func TestWhyThereAreNoPods(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	gone, hangs := kubelettest.New(t), kubelettest.New(t)
	hangs.Hang()
	for _, x := range []struct{ name, socket, cause, remedy string }{
		{"missing", filepath.Join(dir, "none.sock"), "there is no ", "--kube.pod-resources=PATH"},
		{"nobody serves", dead, "nothing listens at ", "systemctl status kubelet"},
		{"a file", os.Args[0], "nothing listens at ", "kubelet"},
		{"giant", gone.Socket, "more than 16 MiB", "kubelet's log"},
		{"hangs", hangs.Socket, "did not answer in time", "journalctl"},
	} {
		t.Run(x.name, func(t *testing.T) {
			switch x.name {
			case "nobody serves":
				leaveSocket(t, dead)
			case "giant":
				gone.Set(kubelettest.Pod("n", strings.Repeat("p", maxAnswer), "nvidia.com/gpu", idBoard))
			}
			k, written := run(t, x.socket, map[bool]time.Duration{true: 50 * time.Millisecond, false: patience}[x.name == "hangs"])
			await(t, "a note", func() bool { return len(k.Notes()) == 1 })
			if got := k.Notes()[0]; !strings.Contains(got.Cause, x.cause) || !strings.Contains(got.Remedy, x.remedy) {
				t.Errorf("note %q", got)
			}
			if !strings.Contains(written.String(), x.remedy) {
				t.Errorf("logged %s", written)
			}
		})
	}
}

// leaveSocket makes a socket without a server.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	k := kubelettest.New(t)
	if err := os.Rename(k.Socket, path); err != nil {
		t.Fatal(err)
	}
	k.Stop()
}

// TestMinors: device files identify boards if the machine gives their UUIDs.
func TestMinors(t *testing.T) {
	server := kubelettest.New(t)
	server.Set(kubelettest.Pod("n", "p", "nvidia.com/gpu", "nvidia4", "nvidia5/gi1"))
	k := NewKubelet(KubeletOptions{Socket: server.Socket, Logger: slog.New(slog.DiscardHandler), Minors: func() map[string]string {
		return map[string]string{"4": idBoard}
	}})
	k.ask(t.Context())
	holds := k.current.Load().holds
	if len(holds) != 2 || holds[1].uuid != strings.ToLower(idBoard) || holds[1].minor != "" || holds[0].minor != "5" || holds[0].instance != "1" {
		t.Errorf("%+v", holds)
	}
}

//go:build linux

package dcgm

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestReadEndsWithItsContext(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.Hang}}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := w.Read(ctx, &w.last); !errors.Is(err, context.Canceled) || len(w.last.Samples) > 0 {
		t.Errorf("%v", err)
	}
}

// hanging is a stream that prints its header and nothing else.
var hanging = []dcgmtest.Failure{{Kind: dcgmtest.Hang, Command: "dmon"}}

func TestCloseDuringStart(t *testing.T) {
	for i := range 10 {
		w := newWorld(t, dcgmtest.Scenario{Failures: hanging})
		read := make(chan error)
		go func() { read <- w.Read(t.Context(), &w.last) }()
		if i%2 == 0 {
			eventually(t, "children", func() bool { return len(w.starts("")) == 2 })
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; !errors.Is(err, os.ErrClosed) {
			t.Errorf("read %v", err)
		}
		for _, s := range w.starts("") {
			if exists(s.PID) {
				t.Errorf("child %d is still there", s.PID)
			}
		}
		if err := w.Read(t.Context(), &w.last); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after the end: %v", err)
		}
	}
}

func TestCloseBeforeTheFirstRead(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{})
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.Read(t.Context(), &w.last); !errors.Is(err, os.ErrClosed) || len(w.starts("")) > 0 {
		t.Errorf("read %v, started %v", err, w.starts(""))
	}
}

// A wrapper's children end with it, although they keep its output open.
func TestWrapperLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nsleep 1000 & echo $! >> " + dir + "/pids\nexit 235\n"
	if err := os.WriteFile(dir+"/dcgmi", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := New(unprobed(Options{Path: dir + "/dcgmi"}))
	defer s.Close()
	var b raw.Batch
	err := s.Read(t.Context(), &b)
	if e, ok := errors.AsType[*source.Error](err); !ok || e.Failure != source.HostEngineUnavailable {
		t.Errorf("read %v", err)
	}
	s.Close()
	pids, _ := os.ReadFile(dir + "/pids")
	for _, word := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(word)
		eventually(t, "the end of the wrapper's child", func() bool { return !runs(pid) })
	}
	if len(pids) == 0 {
		t.Error("no child")
	}
}

// proxyEnv makes the test binary a proxy that reads from the fake it names.
const proxyEnv = "KPULSE_TEST_PROXY"

func beProxy(path string) {
	s := New(unprobed(Options{Path: path}))
	var b raw.Batch
	for s.Read(context.Background(), &b) == nil {
	}
	os.Exit(1)
}

// However the proxy dies, its children die with it.
func TestNoOrphan(t *testing.T) {
	log := filepath.Join(t.TempDir(), "starts")
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(1), StartLog: log,
		Failures: hanging}) // it writes nothing, so SIGPIPE cannot end it
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: append(os.Environ(), proxyEnv+"="+exe), Files: []*os.File{nil, write, write}})
	if err != nil {
		t.Fatal(err)
	}
	write.Close()
	defer read.Close()
	streams := func() int {
		return len(slices.DeleteFunc(dcgmtest.Starts(t, log), func(s dcgmtest.Start) bool { return s.Args[0] != "dmon" }))
	}
	eventually(t, "children", func() bool { return streams() >= 2 })
	if err := proxy.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = proxy.Wait()
	for _, s := range dcgmtest.Starts(t, log) {
		eventually(t, "the end of a child", func() bool { return !runs(s.PID) })
	}
	_, _ = io.Copy(io.Discard, read)
}

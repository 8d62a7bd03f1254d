package host

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// lockedFS keeps whoever opens a file waiting.
type lockedFS struct {
	fs.FS
	file string
	gate chan struct{}
}

func (l lockedFS) Open(name string) (fs.File, error) {
	if name == l.file {
		<-l.gate
	}
	return l.FS.Open(name)
}

// A process whose memory is locked costs the others a short wait, once.
func TestDescribeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := fstest.MapFS{}
		for pid := range 4 {
			files[fmt.Sprintf("%d/status", pid)] = &fstest.MapFile{Data: []byte("Uid:\t5\t6\t7\t8\nGid:\t1\t2\t3\t4\n")}
			files[fmt.Sprintf("%d/cmdline", pid)] = &fstest.MapFile{Data: fmt.Appendf(nil, "run\x00%d\x00", pid)}
		}
		gate := make(chan struct{})
		p := NewProcesses(lockedFS{files, "1/cmdline", gate}, nil)
		for i := range 3 {
			begun := time.Now()
			all := p.DescribeAll(t.Context(), []int{0, 1, 2, 2, 9})
			want := map[int]Process{0: {"6", "2", "run 0"}, 2: {"6", "2", "run 2"}, 9: {}}
			if fmt.Sprint(all) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", all, want)
			}
			if d := time.Since(begun); d > 0 != (i == 0) || d > processPatience {
				t.Errorf("time %d it took %v", i, d)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if all := p.DescribeAll(ctx, []int{1, 3}); all[1] != (Process{}) {
			t.Errorf("%v", all)
		}
		close(gate)
		synctest.Wait()
		if all := p.DescribeAll(t.Context(), []int{1}); all[1].Command != "run 1" {
			t.Errorf("once it is unlocked: %v", all)
		}
	})
}

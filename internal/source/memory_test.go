package source

import (
	"runtime"
	"sync"
	"testing"
)

// TestMemory: bodies grow up to three fifths of the limit beside what is there, what grows at once is refused until the rest
// fits, and dropped memory is free again.
func TestMemory(t *testing.T) {
	runtime.GC()
	const part = 8 << 20
	m := &Memory{Limit: (new(Memory).heap() + 10*part) * 10 / 6} // room for ten, less what the test itself takes
	if nothing := (*Memory)(nil); cap(Make[byte](nothing, 0, part, nil)) != part || !nothing.Fits(1<<60) || !nothing.Answers(1<<60) {
		t.Error("there is a limit without one")
	}
	held := make([][]byte, 20)
	var all sync.WaitGroup
	for i := range held {
		all.Go(func() { held[i] = Make[byte](m, 0, part, func() { held[i] = nil }) })
	}
	all.Wait()
	n := 0
	for _, body := range held {
		if body != nil {
			n++
		}
	}
	if n < 8 || n > 10 {
		t.Errorf("%d of 20 fit, want 8 to 10", n)
	}
	if m.Fits(3*part) || !m.Answers(1<<20) {
		t.Error("more samples fit, or no answer")
	}
	runtime.KeepAlive(held)
	clear(held)
	if held[0] = Make[byte](m, 0, 7*part, func() {}); held[0] == nil {
		t.Error("what was dropped is not free again")
	}
	if body := Make[byte](m, 0, small-1, nil); body == nil {
		t.Error("little is refused")
	}
	runtime.KeepAlive(held)
	if n := testing.AllocsPerRun(100, func() { m.Answers(1) }); n != 0 {
		t.Errorf("to ask takes %v allocations, and each scrape asks", n)
	}
}

// TestMemoryOfSmallPages: pages that grow by turns, for which there is room, are not refused for what each of them left behind.
func TestMemoryOfSmallPages(t *testing.T) {
	const part, step = 4 * small, 4 << 10
	runtime.GC()
	m := &Memory{Limit: (new(Memory).heap() + 80*part) * 10 / 6}
	pages, refused := make([][]byte, 64), 0
	for round := range 10 {
		for i := range pages {
			if pages[i] = Make[byte](m, cap(pages[i]), part+round*step, func() { pages[i] = nil }); pages[i] == nil {
				refused++
			}
		}
	}
	runtime.KeepAlive(pages)
	if refused > 0 {
		t.Errorf("%d times of 640 a page is refused", refused)
	}
}

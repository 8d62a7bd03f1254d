package host

import (
	"context"
	"time"
)

// processPatience is how long to wait for one process. Reading its command line
// takes its memory's lock, which one that hangs in a driver may hold for good.
const processPatience = 500 * time.Millisecond

// DescribeAll tells of all these processes as describe does, and nothing of one that
// keeps us waiting, nor of those that are left when ctx ends. It is not asked for
// again before the kernel has answered.
func (p *Processes) DescribeAll(ctx context.Context, pids []int) map[int]Process {
	all := make(map[int]Process, len(pids))
	patience := time.NewTimer(0)
	defer patience.Stop()
	for _, pid := range pids {
		if _, known := all[pid]; known || !p.begin(pid) {
			continue
		}
		described := make(chan Process, 1)
		go func() {
			process := p.describe(ctx, pid)
			p.end(pid) // before it is told, or who asks again at once gets nothing
			described <- process
		}()
		patience.Reset(processPatience)
		select {
		case all[pid] = <-described:
		case <-patience.C:
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// begin tells whether nobody waits for the process, and notes that we do.
func (p *Processes) begin(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[pid] {
		return false
	}
	p.waiting[pid] = true
	return true
}

func (p *Processes) end(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, pid)
}

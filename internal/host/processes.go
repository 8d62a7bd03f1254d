package host

import (
	"cmp"
	"context"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// processPatience is how long to wait for one process. Reading its command line takes
	// the lock of its memory, which a process that hangs in a driver may never release, and
	// a directory service may be slow to name its user.
	processPatience = 500 * time.Millisecond
	// maxCommand is the most bytes of a command to show.
	maxCommand = 256
)

// Processes reads the users and commands of processes. It is safe for concurrent use.
type Processes struct {
	describe func(pid int) description
	waiting  sync.Map // the pids being read
}

// description is what /proc tells about a process; "" is unknown.
type description struct{ user, group, command string }

// NewProcesses returns a reader of the machine whose procfs is mounted at proc. With commandLines,
// commands are command lines, which may contain secrets, else the kernel's names of processes.
func NewProcesses(proc string, commandLines bool) *Processes {
	return &Processes{describe: func(pid int) description { return describe(proc, pid, commandLines) }}
}

// Describe sets User, Group and Command of the processes of list by their PID, to "" if the
// process is gone, hidden from us, does not answer in time, or is not read before ctx ends.
// A process that does not answer is not read again before it does.
func (p *Processes) Describe(ctx context.Context, list []canonical.Process) {
	known := make(map[int]description, len(list))
	for i := range list {
		pid := list[i].PID
		d, ok := known[pid]
		if !ok {
			d = p.await(ctx, pid)
			known[pid] = d
		}
		list[i].User, list[i].Group, list[i].Command = d.user, d.group, d.command
	}
}

// await describes a process in a separate goroutine, since that may hang.
func (p *Processes) await(ctx context.Context, pid int) (d description) {
	if ctx.Err() != nil {
		return d
	}
	if _, waits := p.waiting.LoadOrStore(pid, true); waits {
		return d
	}
	described := make(chan description, 1)
	go func() {
		d := p.describe(pid)
		p.waiting.Delete(pid) // first, since a caller may ask again once it has the answer
		described <- d
	}()
	ctx, cancel := context.WithTimeout(ctx, processPatience)
	defer cancel()
	select {
	case d = <-described:
	case <-ctx.Done():
	}
	return d
}

// describe reads the process that has the pid now. User and group are the effective ones,
// as numbers if they have no names.
func describe(proc string, pid int, commandLine bool) (d description) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return d
	}
	process, err := fs.Proc(pid)
	if err != nil {
		return d
	}
	if status, err := process.NewStatus(); err == nil {
		const effective = 1 // of real, effective, saved and file system ids
		d.user, d.group = strconv.FormatUint(status.UIDs[effective], 10), strconv.FormatUint(status.GIDs[effective], 10)
		if u, err := user.LookupId(d.user); err == nil {
			d.user = cmp.Or(u.Username, d.user)
		}
		if g, err := user.LookupGroupId(d.group); err == nil {
			d.group = cmp.Or(g.Name, d.group)
		}
	}
	d.command = command(process, commandLine)
	return d
}

// command returns the kernel's name of a process or its command line, on one line of
// printable text, at most maxCommand bytes long. If the command line is empty, as for
// a kernel thread or a zombie, or blank, it is the name in brackets, as in ps.
func command(process procfs.Proc, commandLine bool) string {
	if commandLine {
		args, _ := process.CmdLine()
		if line := printable(strings.Join(args, " ")); line != "" {
			return line
		}
	}
	name, err := process.Comm()
	if name = printable(name); err == nil && commandLine {
		name = "[" + name + "]"
	}
	return name
}

// printable returns at most maxCommand bytes of text, on one line.
func printable(text string) string {
	return diag.Short(strings.Join(strings.Fields(diag.Text(text)), " "), maxCommand)
}

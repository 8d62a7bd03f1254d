package host

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"
)

// maxArguments is how many bytes of a command line are read. Of them, at most
// maxCommand are shown.
const maxArguments = 4 << 10

// Process is what /proc tells of a process. What it does not tell is "".
type Process struct {
	// User and Group are those it acts as (the effective ids): names, or numbers
	// where they have none.
	User, Group string
	// Command is the command line, or its name in brackets if it has none, on one
	// line of printable text: secrets masked, at most 256 bytes.
	Command string
}

// Processes reads whose processes are. It may be used from any goroutine.
type Processes struct {
	proc  fs.FS
	names *Names

	mu      sync.Mutex
	waiting map[int]bool // the pids that somebody waits for; guarded by mu
}

// NewProcesses returns a reader of the machine whose /proc is given. Users and
// groups are numbers if names is nil: right for the /proc of another root, such as
// the host's that is mounted into a container, whose names we do not have.
func NewProcesses(proc fs.FS, names *Names) *Processes {
	return &Processes{proc: proc, names: names, waiting: map[int]bool{}}
}

// describe tells of the process that has the pid now, and nothing at all of one
// that is gone or hidden from us. Names that are not found before ctx ends are
// numbers.
func (p *Processes) describe(ctx context.Context, pid int) Process {
	dir := strconv.Itoa(pid)
	status, err := fs.ReadFile(p.proc, dir+"/status")
	if err != nil {
		return Process{}
	}
	described := Process{
		User:    p.names.user(ctx, effectiveID(status, "Uid:")),
		Group:   p.names.group(ctx, effectiveID(status, "Gid:")),
		Command: mask(p.arguments(dir)),
	}
	if described.Command == "" { // of the kernel, or a zombie
		if comm, err := fs.ReadFile(p.proc, dir+"/comm"); err == nil {
			described.Command = mask([]string{"[" + strings.TrimSuffix(string(comm), "\n") + "]"})
		}
	}
	return described
}

// effectiveID returns the second of the ids (real, effective, saved, file system)
// on a line of a status file, "" if there is none.
func effectiveID(status []byte, name string) string {
	for line := range bytes.Lines(status) {
		ids := strings.Fields(string(line))
		if len(ids) > 2 && ids[0] == name {
			return ids[2]
		}
	}
	return ""
}

// arguments returns the command line. One that is too long ends in a mark; the
// argument that was cut is left out, for a part of a secret does not look like one.
func (p *Processes) arguments(dir string) []string {
	f, err := p.proc.Open(dir + "/cmdline")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxArguments+1))
	if err != nil {
		return nil
	}
	tooLong := len(text) > maxArguments
	if !tooLong {
		// A program that wrote a title over its arguments leaves the rest empty.
		text = bytes.TrimRight(text, "\x00")
	}
	if len(text) == 0 {
		return nil
	}
	args := strings.Split(string(text), "\x00")
	if tooLong {
		args[len(args)-1] = cutMark
	}
	return args
}

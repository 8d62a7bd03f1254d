package dcgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// askTimeout limits commands that end by themselves. dcgmi looks for a host engine for
	// 5 s before it reports that there is none; a failing driver blocks nvidia-smi for
	// minutes.
	askTimeout = 7 * time.Second
	// askSize limits the output of such a command, in bytes. The longest, of
	// nvidia-smi -q -x, takes some hundred kilobytes.
	askSize = 4 << 20
)

// answer is the result of a command.
type answer struct {
	stdout []byte
	stderr string
	code   int            // its exit status
	signal syscall.Signal // the signal that killed it, 0 for none
	// err is why it could not be started, or gave no complete answer; stdout is
	// then empty.
	err     error
	started bool
	strange string // the beginning of its output, with errStrange
}

// Reasons for an incomplete answer.
var (
	errSilent    = fmt.Errorf("no answer within %s", askTimeout)
	errStrange   = errors.New("not an answer of dcgmi")
	errTalkative = fmt.Errorf("more than %d MiB", askSize>>20)
	errStuck     = errors.New("an earlier one was killed and has not ended yet")
)

// asker runs commands that end by themselves.
type asker struct {
	mu sync.Mutex
	// left are, by command line, the commands that SIGKILL has not ended, as in
	// state D. Each is reaped when the kernel releases it, and not run again
	// before that.
	left map[string]*child
}

// ask runs a command to its end, for at most askTimeout.
func (a *asker) ask(ctx context.Context, path string, args []string) answer {
	line := path + " " + strings.Join(args, " ")
	if a.stuck(line) {
		return answer{err: errStuck, started: true}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
	defer cancel()
	c, err := startChild(path, args)
	if err != nil {
		return answer{err: err}
	}
	defer context.AfterFunc(ctx, func() { _ = c.stdout.SetReadDeadline(time.Unix(1, 0)) })()
	out, err := c.readAll(ctx, isDCGMI(args))
	if err == nil && len(out) > askSize {
		err = errTalkative
	}
	if err != nil || !c.ended(stopGrace) {
		c.signal(syscall.SIGKILL)
	}
	c.stdout.Close()
	if !c.ended(drainTime + stopGrace) {
		a.leave(line, c)
		return answer{err: errors.Join(err, errStuck), started: true}
	}
	got := answer{stderr: c.stderr.String(), err: err, started: true}
	if isDCGMI(args) && (errors.Is(err, errStrange) || errors.Is(err, errTalkative) && !isAnswer(out)) {
		got.err, got.strange = errStrange, string(out[:min(len(out), tailSize)])
	}
	if err == nil {
		got.stdout = out
	}
	got.code, got.signal = c.status()
	return got
}

// isDCGMI reports whether args are those of a dcgmi command that ends by itself, not of
// nvidia-smi.
func isDCGMI(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "discovery", "profile", "--version":
		return true
	}
	return false
}

// readAll reads the child's stdout to its end, to a little more than askSize, or until ctx ends.
// It gives up on a dcgmi whose output contains no line of an answer noiseTime after the first
// byte: such output may be endless.
func (c *child) readAll(ctx context.Context, dcgmis bool) ([]byte, error) {
	var out []byte
	buf := make([]byte, 32<<10)
	var look *time.Timer
	for len(out) <= askSize {
		n, err := c.stdout.Read(buf)
		out = append(out, buf[:n]...)
		if dcgmis && n > 0 && look == nil {
			look = time.AfterFunc(noiseTime, func() { _ = c.stdout.SetReadDeadline(time.Unix(1, 0)) })
			defer look.Stop()
		}
		switch {
		case err == io.EOF:
			return out, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			if err != nil {
				return out, err
			}
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case !isAnswer(out):
			return out, errStrange
		default: // it is an answer, but slow
			_ = c.stdout.SetReadDeadline(time.Time{})
			if ctx.Err() != nil {
				return out, context.Cause(ctx)
			}
		}
	}
	return out, nil
}

// stuck reports whether an earlier run of the command line has not ended.
func (a *asker) stuck(line string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.left[line]
	if c == nil || !c.ended(0) {
		return c != nil
	}
	delete(a.left, line)
	return false
}

func (a *asker) leave(line string, c *child) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == nil {
		a.left = map[string]*child{}
	}
	a.left[line] = c
}

// failure explains what is wrong with the answer of that subsystem of dcgmi, nil if nothing is.
// what is the name of a stream.
func (a *answer) failure(path, subsystem, what string) *source.Error {
	switch {
	case a.err != nil && !a.started:
		return unstartable(path, a.err)
	case errors.Is(a.err, errStrange):
		return noisyError("dcgmi "+subsystem, what, a.stderr+a.strange, errStrange)
	case a.err != nil:
		return &source.Error{
			Failure: source.Timeout,
			Cause:   "dcgmi " + subsystem + ": " + a.err.Error() + quoted(a.stderr),
			Remedy:  "check whether the host engine and the driver answer: dcgmi discovery -l; nvidia-smi",
			Err:     a.err,
		}
	case a.code == 0 && a.signal == 0:
		return nil
	}
	return refused("dcgmi "+subsystem, what, a.code, a.signal, a.printed())
}

// printed returns the output of the command on stderr, followed by the end of stdout: dcgmi
// prints errors there too, after everything else.
func (a *answer) printed() string {
	return a.stderr + string(a.stdout[max(len(a.stdout)-tailSize, 0):])
}

package dcgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// askTimeout limits commands that end by themselves. dcgmi looks for a host engine for 5 s before it reports that
	// there is none; a failing driver blocks nvidia-smi for minutes.
	askTimeout = 7 * time.Second
	// askSize limits the output of such a command, in bytes. The longest, of nvidia-smi -q -x, takes some hundred
	// kilobytes.
	askSize = 4 << 20
)

// answer is the result of a command.
type answer struct {
	stdout  []byte         // empty if it gave no complete answer
	printed string         // what may explain a failure: stderr and the end of stdout, where dcgmi prints errors too
	code    int            // its exit status
	signal  syscall.Signal // the signal that killed it, 0 for none
	err     error          // why it could not be started, or gave no complete answer
	started bool
}

// Reasons for an incomplete answer.
var (
	errSilent    = fmt.Errorf("no answer within %s", askTimeout)
	errTalkative = fmt.Errorf("more than %d MiB", askSize>>20)
	errStuck     = errors.New("an earlier one was killed and has not ended yet")
)

// asker runs commands that end by themselves.
type asker struct {
	// stuck are, by command line, the children that SIGKILL has not ended, as in state D. No such command is run again
	// before the kernel has released it.
	stuck sync.Map
}

// ask runs a command to its end, for at most askTimeout.
func (a *asker) ask(ctx context.Context, path string, args []string) answer {
	line := path + " " + strings.Join(args, " ")
	if before, is := a.stuck.Load(line); is && !before.(*child).ended(0) {
		return answer{err: errStuck, started: true}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
	defer cancel()
	c, err := startChild(path, args)
	if err != nil {
		return answer{err: err}
	}
	defer context.AfterFunc(ctx, func() { _ = c.stdout.SetReadDeadline(time.Unix(1, 0)) })()
	out, err := io.ReadAll(io.LimitReader(c.stdout, askSize+1))
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(out) > askSize:
		err = errTalkative
	}
	if err != nil || !c.ended(stopGrace) {
		c.signal(syscall.SIGKILL)
	}
	c.stdout.Close()
	if !c.ended(drainTime + stopGrace) {
		a.stuck.Store(line, c)
		return answer{err: errors.Join(err, errStuck), started: true}
	}
	got := answer{err: err, started: true, printed: c.stderr.String() + string(out[max(len(out)-tailSize, 0):])}
	if err == nil {
		got.stdout = out
	}
	got.code, got.signal = c.status()
	return got
}

// failure explains what is wrong with the answer of that subsystem of dcgmi, nil if nothing is. what is the name of a
// stream.
func (a *answer) failure(path, subsystem, what string) *source.Error {
	switch {
	case a.err != nil && !a.started:
		return unstartable(path, a.err)
	case a.err != nil:
		e := &source.Error{
			Failure: source.Timeout,
			Cause:   "dcgmi " + subsystem + ": " + a.err.Error() + quoted(a.printed),
			Remedy:  "check whether the host engine and the driver answer: dcgmi discovery -l; nvidia-smi",
			Err:     a.err,
		}
		if a.printed != "" {
			e.Failure = source.Broken
		}
		return e
	case a.code == 0 && a.signal == 0:
		return nil
	}
	return refused("dcgmi "+subsystem, what, a.code, a.signal, a.printed)
}

package kernellog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

var (
	// errOverrun means that records were overwritten before they were read.
	errOverrun = errors.New("records were overwritten")
	// errTooLong means that a line is longer than any record.
	errTooLong = errors.New("a line is too long")
)

const (
	// bufferSize is above the largest record, of 8 KiB.
	bufferSize = 32 << 10
	// lookAgain is the pause before a file at its end, or a FIFO without a writer, is read
	// again.
	lookAgain = 250 * time.Millisecond
)

// tail reads lines from a file that grows. Only interrupt may be called by other goroutines
// than the one that reads.
type tail struct {
	file *os.File
	conn syscall.RawConn
	buf  []byte
	// unread are the bytes of buf that were not returned as lines yet.
	unread []byte
	skip   bool // the rest of a line that is too long
	// system is the system call; tests replace it.
	system func(fd int, buf []byte) (int, error)
	// dry is called when there is nothing more to be read for now.
	dry func()
}

func openTail(path string, dry func()) (*tail, error) {
	// Blocking, opening a FIFO would wait for its writer, and reads could not be interrupted.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &tail{file: file, conn: conn, buf: make([]byte, bufferSize), system: syscall.Read, dry: dry}, nil
}

func (t *tail) close() { t.file.Close() }

// interrupt ends the current read and all later ones.
func (t *tail) interrupt() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) } // fails only for files whose reads never wait

// next returns the next line without its end. It is valid until the next call.
func (t *tail) next(ctx context.Context) ([]byte, error) {
	for {
		if line, rest, whole := bytes.Cut(t.unread, []byte{'\n'}); whole {
			t.unread = rest
			if t.skip {
				t.skip = false
				continue
			}
			return line, nil
		}
		if len(t.unread) == len(t.buf) {
			t.unread = nil
			if !t.skip {
				t.skip = true
				return nil, errTooLong
			}
		}
		if err := t.fill(ctx); err != nil {
			return nil, err
		}
	}
}

// fill reads more after the unread bytes.
func (t *tail) fill(ctx context.Context) error {
	n := copy(t.buf, t.unread)
	t.unread = t.buf[:n]
	got, err := t.read(t.buf[n:])
	switch {
	case err == nil && got > 0:
		t.unread = t.buf[:n+got]
		return nil
	case errors.Is(err, syscall.EPIPE):
		return errOverrun
	case err != nil && !errors.Is(err, syscall.EINTR):
		return &os.PathError{Op: "read", Path: t.file.Name(), Err: err}
	case err == nil: // the end, for now
		t.dry()
		t.startOver()
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
	return ctx.Err()
}

// startOver goes back to the start of a file that was truncated before the position of the next
// read. It drops a half-read line, whose rest is gone.
func (t *tail) startOver() {
	read, err := t.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return // a FIFO
	}
	if is, err := t.file.Stat(); err != nil || !is.Mode().IsRegular() || is.Size() >= read {
		return
	}
	_, _ = t.file.Seek(0, io.SeekStart)
	t.unread, t.skip = nil, false
}

// read reads new records, and waits if there are none.
func (t *tail) read(buf []byte) (n int, err error) {
	failed := t.conn.Read(func(fd uintptr) bool {
		n, err = t.system(int(fd), buf)
		if !errors.Is(err, syscall.EAGAIN) {
			return true
		}
		t.dry()
		return false
	})
	if failed != nil {
		err = failed
	}
	return max(0, n), err
}

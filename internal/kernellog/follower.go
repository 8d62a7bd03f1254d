package kernellog

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	// bufferSize is above the largest record, of 8 KiB.
	bufferSize = 32 << 10
	// lookAgain is the pause before a file at its end, or a FIFO without a writer, is read
	// again.
	lookAgain = 250 * time.Millisecond
)

// follower reads from a file that grows, and from the one that takes its place when it is rotated. Only interrupt
// may be called by other goroutines than the one that reads.
type follower struct {
	first   *os.File // that was opened
	file    *os.File // that is read: another one after a rotation
	conn    syscall.RawConn
	stopped chan struct{}
	// system is the system call; tests replace it.
	system func(fd int, buf []byte) (int, error)
	// dry is called when there is nothing more to be read for now, and lost when records were
	// overwritten before they were read.
	dry, lost func()
}

func openFollower(path string, dry, lost func()) (*follower, error) {
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
	return &follower{first: file, file: file, conn: conn, stopped: make(chan struct{}), system: syscall.Read, dry: dry, lost: lost}, nil
}

func (t *follower) close() { t.first.Close(); t.file.Close() }

// interrupt ends the current read and all later ones. It may be called once.
func (t *follower) interrupt() {
	close(t.stopped)
	_ = t.first.SetReadDeadline(time.Unix(1, 0)) // fails only for files whose reads never wait, as those that are rotated
}

// Read implements io.Reader: it waits for new records.
func (t *follower) Read(buf []byte) (int, error) {
	for {
		n, err := t.once(buf)
		switch {
		case errors.Is(err, syscall.EPIPE):
			t.lost()
		case err != nil && !errors.Is(err, syscall.EINTR):
			return 0, &os.PathError{Op: "read", Path: t.file.Name(), Err: err}
		case n > 0:
			return n, nil
		case err == nil: // the end, for now
			if t.rotate() {
				continue
			}
			t.dry()
			select {
			case <-t.stopped:
			case <-time.After(lookAgain):
			}
		}
		select {
		case <-t.stopped:
			return 0, os.ErrDeadlineExceeded
		default:
		}
	}
}

// rotate reports whether a regular file that was read to its end was rotated, and goes on at the start of the new one
// or, if it was cut, of the same.
func (t *follower) rotate() bool {
	was, err := t.file.Stat()
	if err != nil || !was.Mode().IsRegular() {
		return false
	}
	if now, err := os.Stat(t.first.Name()); err == nil && now.Mode().IsRegular() && now.Size() > 0 && !os.SameFile(was, now) {
		next, err := openFollower(t.first.Name(), nil, nil)
		if err != nil {
			return false
		}
		if t.file != t.first {
			t.file.Close()
		}
		t.file, t.conn = next.file, next.conn
		return true
	}
	at, err := t.file.Seek(0, io.SeekCurrent)
	if err != nil || at <= was.Size() {
		return false
	}
	_, err = t.file.Seek(0, io.SeekStart)
	return err == nil
}

// once reads new records, and waits if there are none.
func (t *follower) once(buf []byte) (n int, err error) {
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

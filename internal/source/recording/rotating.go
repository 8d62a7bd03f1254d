package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// rotating is a file that a new one replaces: PATH becomes PATH.1, PATH.1
// becomes PATH.2, and so on. Pipes and devices are not rotated.
type rotating struct {
	path    string
	keep    int   // old files
	rotates bool  // it is a regular file, not a pipe or device
	whole   int64 // bytes of complete records
	*os.File
}

// errTaken reports that another process writes the file.
var errTaken = errors.New("another process records in it")

// openRotating opens path for writing and locks it, if it is a file, until it is closed. Existing
// content, unless empty, is kept as PATH.1.
func openRotating(path string, keep int) (*rotating, error) {
	f := &rotating{path: path, keep: keep}
	size, err := f.open()
	if err != nil {
		return nil, err
	}
	if size > 0 {
		// Even with keep 0, a start deletes no earlier recording.
		if err := f.renew(max(keep, 1)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// open opens the file and returns the size of its content. For a named pipe without a reader
// it fails instead of waiting.
func (f *rotating) open() (size int64, err error) {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		f.rotates, size = true, info.Size()
		err = lock(file)
	}
	if err != nil {
		return 0, errors.Join(err, file.Close())
	}
	f.File, f.whole = file, 0
	return size, nil
}

// lock makes sure that no other process records in file, if the file system supports locks.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &fs.PathError{Op: "lock", Path: file.Name(), Err: errTaken}
	}
	return nil
}

// next continues with a new file.
func (f *rotating) next() error {
	if f.keep > 0 {
		return f.renew(f.keep)
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	f.whole = 0
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// append writes a record with one call, so that a killed process leaves at most one
// torn record.
func (f *rotating) append(record []byte) error {
	n, err := f.Write(record)
	if err == nil {
		f.whole += int64(n)
	}
	return err
}

// trim cuts off the part of a record that a failed write left.
func (f *rotating) trim() error {
	if !f.rotates {
		return nil
	}
	if err := f.Truncate(f.whole); err != nil {
		return err
	}
	_, err := f.Seek(f.whole, io.SeekStart)
	return err
}

// gone reports whether the path now names another file or none, or whether the file was cut.
func (f *rotating) gone() bool {
	if !f.rotates {
		return false
	}
	named, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	ours, err := f.Stat()
	return err == nil && (!os.SameFile(named, ours) || ours.Size() < f.whole)
}

// reopen opens the path again after its file is gone, or after a pipe or device failed. It
// keeps content that the path has by now.
func (f *rotating) reopen() error {
	old := f.File
	size, err := f.open()
	if err != nil {
		return err
	}
	_ = old.Close() // no longer used
	if size > 0 {
		return f.renew(max(f.keep, 1))
	}
	return nil
}

// renew starts a new file and keeps that many old ones. The old file stays locked
// until the new one is, so that no other process comes in between.
func (f *rotating) renew(keep int) error {
	old := f.File
	if err := shift(f.path, keep); err != nil {
		return err
	}
	if _, err := f.open(); err != nil {
		return err
	}
	return old.Close()
}

// shift renames path and its old files, and drops the oldest if there are more
// than keep.
func shift(path string, keep int) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // an earlier try did this
	}
	name := func(n int) string {
		if n == 0 {
			return path
		}
		return fmt.Sprintf("%s.%d", path, n)
	}
	for n := keep; n > 0; n-- {
		if err := os.Rename(name(n-1), name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// rotating is a file that gives way to a new one: PATH becomes PATH.1, PATH.1
// becomes PATH.2, and so on. Pipes and devices are written to as they are.
type rotating struct {
	path    string
	keep    int  // old files
	rotates bool // it is a file, and no pipe or device
	*os.File
}

// openRotating opens path for writing. What stands there already, unless it is
// empty, is kept as PATH.1.
func openRotating(path string, keep int) (*rotating, error) {
	f := &rotating{path: path, keep: keep, rotates: true}
	info, err := os.Stat(path)
	if err == nil {
		f.rotates = info.Mode().IsRegular()
	}
	if err == nil && f.rotates && info.Size() > 0 {
		// Not even with keep 0 does a start delete what somebody recorded.
		if err := shift(path, max(keep, 1)); err != nil {
			return nil, err
		}
	}
	return f, f.open()
}

// open opens the file. A named pipe that nobody reads is an error, not a wait.
func (f *rotating) open() (err error) {
	f.File, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o644)
	return err
}

// next goes on with a new file.
func (f *rotating) next() error {
	if err := f.Close(); err != nil {
		return err
	}
	if f.keep > 0 {
		if err := shift(f.path, f.keep); err != nil {
			return err
		}
	}
	return f.open()
}

// shift renames path and the files that it was before, and drops the oldest of
// more than keep.
func shift(path string, keep int) error {
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

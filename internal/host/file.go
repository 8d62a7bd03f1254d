package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

const (
	// firstSize fits /proc/stat of a small machine. Files double it as they need.
	firstSize = 8 << 10
	// maxSize is far above /proc/stat of the largest machines, whose line of
	// interrupts is most of it.
	maxSize = 4 << 20
)

// file is one file of /proc that is read again and again. It stays open: the kernel
// writes it anew for each read from its beginning.
type file struct {
	fsys fs.FS
	name string
	open fs.File // nil until it is read
	buf  []byte
}

// read returns the text of now, which is good until the next read.
func (f *file) read() ([]byte, error) {
	text, err := f.readOpen()
	if err != nil {
		f.close() // it may be another file next time
	}
	return text, err
}

func (f *file) readOpen() ([]byte, error) {
	if f.open == nil {
		var err error
		if f.open, err = f.fsys.Open(f.name); err != nil {
			return nil, err
		}
	}
	at, ok := f.open.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("%s: %w: it cannot be read twice; give os.DirFS", f.name, errors.ErrUnsupported)
	}
	for size := max(firstSize, len(f.buf)); size <= maxSize; size *= 2 {
		if size > len(f.buf) {
			f.buf = make([]byte, size)
		}
		n, err := at.ReadAt(f.buf, 0)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case n < len(f.buf):
			return f.buf[:n], nil
		}
	}
	return nil, fmt.Errorf("%s is larger than %d bytes; see what is mounted at /proc", f.name, maxSize)
}

func (f *file) close() {
	if f.open != nil {
		_ = f.open.Close() // it was only read
		f.open = nil
	}
}

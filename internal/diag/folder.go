package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Directory returns the directory dir of this machine. A writer to it cannot make us read files
// elsewhere: links that lead out of it are not followed. Opening a pipe does not block. A link to a directory, and one
// that not only its owner may write to, is not listed: anyone could have made what it has.
func Directory(dir string) fs.FS { return directory(dir) }

type directory string

// Open implements fs.FS.
func (d directory) Open(name string) (fs.File, error) {
	switch info, err := os.Lstat(filepath.Clean(string(d))); {
	case name != "." || err != nil:
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("it is a link; name the directory itself")
	case info.Mode()&0o022 != 0:
		return nil, fmt.Errorf("others may write to it; take that from them: chmod go-w %s", string(d))
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Folder reads the small files of a directory that another program writes. It belongs to one goroutine.
type Folder[T any] struct {
	Dir fs.FS
	// MaxFiles is the most files to consider, in the order of the directory, and MaxBytes the most
	// bytes to read of a file.
	MaxFiles int
	MaxBytes int64
	// Accept reports whether to read the file of that name.
	Accept func(name string) bool
	// Parse makes a T of the content of a file; text has at most its first MaxBytes.
	Parse func(name string, text []byte) T

	files   map[string]T
	full    bool
	outside []string
}

// Look lists the directory, and reads its files. One that cannot be read counts as missing, and so do all
// files if the directory cannot be read.
func (f *Folder[T]) Look() error {
	f.outside, f.files = f.outside[:0], map[string]T{}
	entries, err := f.list()
	if err != nil {
		return reason(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !f.Accept(name) {
			continue
		}
		text, err := f.read(name)
		switch {
		case err == nil:
			f.files[name] = f.Parse(name, text)
		case entry.Type()&fs.ModeSymlink != 0 && !errors.Is(err, fs.ErrNotExist):
			f.outside = append(f.outside, name)
		}
	}
	return nil
}

// Each calls visit with the name and content of each file, in no particular order.
func (f *Folder[T]) Each(visit func(name string, content T)) {
	for name, content := range f.files {
		visit(name, content)
	}
}

// Full reports whether the directory had more than MaxFiles entries in the last Look.
func (f *Folder[T]) Full() bool { return f.full }

// Outside returns how many links the last Look did not follow, because they lead out of the
// directory, and an error that names the first, with dir as the name of the directory.
func (f *Folder[T]) Outside(dir string) (links int, err error) {
	if len(f.outside) == 0 {
		return 0, nil
	}
	return len(f.outside), fmt.Errorf("%s/%s is a link out of the directory, and is not read; write a file there instead", dir, slices.Min(f.outside))
}

// list returns up to MaxFiles entries of the directory.
func (f *Folder[T]) list() ([]fs.DirEntry, error) {
	d, err := f.Dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	dir, ok := d.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a directory")
	}
	entries, err := dir.ReadDir(f.MaxFiles + 1)
	f.full = len(entries) > f.MaxFiles
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries[:min(len(entries), f.MaxFiles)], err
}

// read returns up to MaxBytes of a regular file.
func (f *Folder[T]) read(name string) ([]byte, error) {
	file, err := f.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(file, f.MaxBytes))
}

// reason returns err without its path, if it is a *fs.PathError.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Package folder reads the small files of a directory that another program keeps, each
// again only when it changed.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// In returns the directory dir of this machine. Who may write into it may not have us read
// another file: links that lead out of it are not followed. Nor can a pipe hold us up.
func In(dir string) fs.FS { return directory(dir) }

type directory string

// Open implements fs.FS.
func (d directory) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Stat implements fs.StatFS.
func (d directory) Stat(name string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.Stat(name)
}

// settled is the age from which a file's time of change can be trusted to be
// another after the next change: kernels and network file systems keep it in
// steps of up to two seconds.
const settled = 2 * time.Second

// Folder reads a directory. It belongs to one goroutine.
type Folder[T any] struct {
	// Dir is the directory.
	Dir fs.FS
	// MaxFiles is how many of its files are looked at, in the order of the directory.
	MaxFiles int
	// MaxBytes is how much of a file is read.
	MaxBytes int64
	// Accept tells whether a file of that name is of interest.
	Accept func(name string) bool
	// Parse makes a T of the content of a file, of which text may be only the first MaxBytes.
	Parse func(name string, text []byte) T

	files   map[string]file[T]
	full    bool
	outside []string
}

// file is a file as it was when it was read.
type file[T any] struct {
	content  T
	modified time.Time
	size     int64
	read     time.Time
}

// Look looks at the directory, and reads the files that changed since the last look, by the same
// clock as now. A file that cannot be read counts as missing, and so do all files while the
// directory cannot be read.
func (f *Folder[T]) Look(now time.Time) error {
	f.outside = f.outside[:0]
	entries, err := f.list()
	if err != nil {
		f.files = nil
		return Reason(err)
	}
	files := make(map[string]file[T], len(f.files))
	for _, entry := range entries {
		name := entry.Name()
		if !f.Accept(name) {
			continue
		}
		info, err := fs.Stat(f.Dir, name) // follows links
		if err != nil && entry.Type()&fs.ModeSymlink != 0 && !errors.Is(err, fs.ErrNotExist) {
			f.outside = append(f.outside, name)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		known, ok := f.files[name]
		if !ok || !known.modified.Equal(info.ModTime()) || known.size != info.Size() || known.read.Sub(known.modified) < settled {
			text, err := f.read(name)
			if err != nil {
				continue
			}
			known = file[T]{f.Parse(name, text), info.ModTime(), info.Size(), now}
		}
		files[name] = known
	}
	f.files = files
	return nil
}

// Each calls visit with the content of each file, by its name and in no order.
func (f *Folder[T]) Each(visit func(name string, content T)) {
	for name, file := range f.files {
		visit(name, file.content)
	}
}

// Full reports whether the directory had more than MaxFiles when Look saw it.
func (f *Folder[T]) Full() bool { return f.full }

// Outside returns how many links lead out of the directory and were not followed when Look
// saw them, and an error that names the first; dir is what people know the directory by.
func (f *Folder[T]) Outside(dir string) (links int, err error) {
	if len(f.outside) == 0 {
		return 0, nil
	}
	return len(f.outside), fmt.Errorf("%s/%s leads out of the directory, and is not read; write a file there, not a link", dir, slices.Min(f.outside))
}

// list returns what is in the directory, up to the bound.
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
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	f.full = len(entries) > f.MaxFiles
	return entries[:min(len(entries), f.MaxFiles)], nil
}

// read returns the content of a file, up to the bound. The file may have been replaced before it
// was opened.
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

// Reason removes the path from an error that names it.
func Reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

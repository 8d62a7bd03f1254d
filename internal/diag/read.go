package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the content of a file of at most limit bytes. What says which kind
// of file it should be, such as "config file". A named pipe will do: shells make one
// of <(…). The error begins with the path.
func Read(path, what string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, what, err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, unreadable(path, what, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: larger than %d bytes, so hardly a %s; name the right one", path, limit, what)
	}
	return body, nil
}

// unreadable says what the file system says, and what to look at.
func unreadable(path, what string, err error) error {
	remedy := "see that it can be read: cat " + path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy = "check the name of the " + what
	case errors.Is(err, syscall.EISDIR):
		remedy = "name a file in it"
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // without the path, which is said already
	}
	return fmt.Errorf("%s: %w; %s", path, err, remedy)
}

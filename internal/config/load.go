package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile is the largest file that is read, in bytes. The example is a hundredth
// of it; what is larger is not a configuration.
const maxFile = 1 << 20

// Load reads the file at path. Its error is Problems where the file could be read
// but says something wrong.
func Load(path string) (Config, error) {
	body, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	return Parse(path, body)
}

// readFile returns the content of a file. A named pipe will do: shells make one of
// <(…).
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, unreadable(path, err)
	case len(body) > maxFile:
		return nil, fmt.Errorf("%s: larger than %d bytes, so hardly a config file; name the right one", path, maxFile)
	}
	return body, nil
}

// unreadable says what the file system says, and what to look at.
func unreadable(path string, err error) error {
	remedy := "see that it can be read: cat " + path
	if errors.Is(err, fs.ErrNotExist) {
		remedy = "check the name of the config file"
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // without the path, which is said already
	}
	return fmt.Errorf("%s: %w; %s", path, err, remedy)
}

package holders

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a file and of a value, in bytes, far above real ones; deploy/slurm/README.md
// states them.
const (
	maxJobBytes = 4096
	maxJobText  = 256
)

// jobInfo is the information about a job; "" is unknown.
type jobInfo struct{ User, Account, Partition string }

// jobFile is the jobFile of a file and its first mistake.
type jobFile struct {
	info jobInfo
	err  error
}

// parseJob reads a file of lines `key=value`. It skips unknown keys, empty lines, lines that
// begin with #, and malformed lines.
func parseJob(name string, text []byte) jobFile {
	var c jobFile
	complain := func(line int, format string, a ...any) {
		if c.err == nil {
			c.err = fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, a...))
		}
	}
	if len(text) > maxJobBytes {
		complain(1, "more than %d bytes; write user, account and partition only", maxJobBytes)
		return c
	}
	at := map[string]*string{"user": &c.info.User, "account": &c.info.Account, "partition": &c.info.Partition}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		to := at[key]
		switch {
		case !ok:
			complain(number, "no key=value; write such as user=ada")
		case to == nil:
		case *to != "":
			complain(number, "%s is given twice; write it once", key)
		case len(value) > maxJobText:
			complain(number, "%s has more than %d bytes; shorten it", key, maxJobText)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			complain(number, "%s is not text; write UTF-8 without control characters", key)
		default:
			*to = value
		}
	}
	return c
}

// isJob reports whether name may be the name of a job: temporary files begin with a dot.
func isJob(name string) bool {
	return name != "" && name[0] != '.' && len(name) <= maxJobText && utf8.ValidString(name)
}

package dcgm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// ending is an end of a command that is not a return of DCGM: from a shell, the dynamic
// loader, or the parser of dcgmi's command line.
type ending struct {
	status  int    // the exit status, 0 for any
	phrase  string // in its output, "" for any
	failure source.Failure
	cause   string
	remedy  string
}

// endings have priority over returns.
var endings = []ending{
	{0, "PARSE ERROR", source.Unsupported,
		"dcgmi does not accept its arguments",
		"see its version, 2.3 or later is needed: dcgmi --version; and report this"},
	{0, "error while loading shared libraries", source.HostEngineUnavailable,
		"dcgmi cannot be run",
		"install DCGM again: datacenter-gpu-manager; and see what is missing: ldd $(command -v dcgmi)"},
	{127, "", source.HostEngineUnavailable,
		"dcgmi cannot be run",
		"install DCGM again: datacenter-gpu-manager; and see what is missing: ldd $(command -v dcgmi)"},
	{126, "", source.PermissionDenied,
		"dcgmi may not be run",
		"let the user that runs kpulse-proxy run it: ls -l $(command -v dcgmi)"},
}

// unknownField is a field id that dcgmi does not know.
type unknownField int

func (f unknownField) Error() string { return fmt.Sprintf("field id %d is unknown to dcgmi", int(f)) }

// explain returns why the child of st, which is gone, has ended. err is the
// error at the end of its output.
func explain(st *stream, err error, r *receiver, c *child) error {
	text := c.stderr.String() + r.otherLines.String()
	command := st.command()
	switch {
	case errors.Is(err, errNoise):
		return noisyError(command, st.name, text, err)
	case errors.As(err, new(errHangs)):
		return &source.Error{
			Failure: source.Broken,
			Cause:   command + " hangs, " + err.Error() + ", and was ended" + quoted(text),
			Remedy:  "check whether the host engine and the driver answer: dcgmi discovery -l; nvidia-smi; if they are only slow, raise --poll",
			Err:     err,
		}
	case !errors.Is(err, io.EOF):
		return &source.Error{
			Failure: source.Broken,
			Cause:   command + " cannot be read: " + err.Error() + quoted(text),
			Remedy:  "see what it prints: dcgmi dmon -e 100",
			Err:     err,
		}
	}
	code, sig := c.status()
	if id, ok := unknownFieldIn(text); ok {
		return id
	}
	return refused(command, st.name, code, sig, text)
}

// refused explains the end of a command by its exit status, or the signal that
// killed it, and by its messages in text.
func refused(command, stream string, code int, sig syscall.Signal, text string) *source.Error {
	if e := knownEnding(code, text); e != nil {
		words := strings.NewReplacer("STREAM", stream)
		e.Cause = command + ": " + words.Replace(e.Cause) + quoted(text)
		e.Remedy = words.Replace(e.Remedy)
		return e
	}
	if code > 128 && code < 160 { // how a shell or dcgmi reports a signal
		sig = syscall.Signal(code - 128)
	}
	how := "ended with exit status " + strconv.Itoa(code)
	remedy := "see what it says: dcgmi dmon -e 100 -c 1; dcgmi discovery -l; and " + seeHostEngineLog
	if sig != 0 {
		how = "was killed by a signal (" + sig.String() + ")"
		remedy = "check whether the kernel ran out of memory: dmesg | grep -i oom; kpulse-proxy restarts it automatically"
	}
	return &source.Error{Failure: source.Broken, Cause: command + " " + how + quoted(text), Remedy: remedy}
}

// noStatus stands for the exit status of a command that still runs, or whose status is unknown.
const noStatus = -1

// known returns the error for an exit status and the messages in text, nil if unknown.
// Cause and remedy may contain STREAM.
func knownEnding(status int, text string) *source.Error {
	for i := range endings {
		e := &endings[i]
		if e.phrase != "" && strings.Contains(text, e.phrase) || e.status != 0 && e.status == status {
			return &source.Error{Failure: e.failure, Cause: e.cause, Remedy: e.remedy}
		}
	}
	row := returnOf(status, text)
	if row == nil {
		return nil
	}
	e := &source.Error{Failure: row.failure, Cause: row.cause, Remedy: row.remedy, Err: row.wraps()}
	if row.code == connectionInvalid && strings.Contains(text, amidReadings) {
		e.Cause = "the host engine went away"
		e.Remedy = "see why it ended: journalctl -u nvidia-dcgm; and start it: systemctl start nvidia-dcgm"
	}
	return e
}

// amidReadings begins dmon's errors after its first readings.
const amidReadings = "Error getting values information"

// errFields is wrapped by refusals that may concern only some of the fields, errLost by
// those about a lost GPU.
var (
	errFields = errors.New("fields refused")
	errLost   = errors.New("a GPU is lost")
)

// wraps returns the error that the error of a row wraps, nil for none.
func (r *returned) wraps() error {
	switch r.code {
	case notSupported, unknownFieldID, fieldOfOtherAPI, profNotSupported, profMultiPass, insufficientDriver, groupIncompatible:
		return errFields
	case gpuLost:
		return errLost
	}
	return nil
}

// unknownFieldIn returns the id in dcgmi's error about an unknown field.
func unknownFieldIn(text string) (unknownField, bool) {
	_, rest, ok := strings.Cut(text, "Got invalid field ID. '")
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, "'")
	id, err := strconv.Atoi(digits)
	return unknownField(id), err == nil
}

// quoted returns the line of dcgmi's output that explains a failure, after a colon, "" if it
// printed nothing.
func quoted(text string) string {
	if line := errorLine(text); line != "" {
		return ": " + strconv.Quote(line)
	}
	return ""
}

// unstartable explains why a command that was found could not be started.
func unstartable(path string, err error) *source.Error {
	e := &source.Error{Failure: source.Broken, Cause: path + " cannot be started: " + err.Error(), Remedy: "try it by hand: " + path + " --version", Err: err}
	switch {
	case errors.Is(err, errNotLinux):
		e.Failure, e.Cause = source.Unsupported, err.Error()
		e.Remedy = "use --backend=prometheus with the URL of an exporter, or try the demo with --backend=replay"
	case errors.Is(err, fs.ErrPermission):
		e.Failure = source.PermissionDenied
		e.Remedy = "let the user that runs kpulse-proxy run it: ls -l " + path + "; and check that its file system is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC): // it may be half copied, and is retried
		e.Failure = source.HostEngineUnavailable
		e.Remedy = "see what it is: file " + path + "; and install DCGM for this machine's architecture"
	case errors.Is(err, fs.ErrNotExist):
		e.Failure = source.HostEngineUnavailable
		e.Remedy = "check whether the interpreter or the loader it names is there: file " + path
	}
	return e
}

package dcgmi

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

// What dcgmi returns: codes of dcgmReturn_t in DCGM's dcgm_structs.h, the lowest
// eight bits of which become its exit status.
const (
	badParam            = -1
	badUsage            = -2 // dcgmi's own, of its command line
	noData              = -14
	gpuLost             = -18
	connectionInvalid   = -21
	groupIncompatible   = -23
	maxLimit            = -24
	requiresRoot        = -29
	moduleNotLoaded     = -33
	inUse               = -34
	profNotSupported    = -36
	profLibraryError    = -37
	profMultiPass       = -38
	insufficientDriver  = -44
	paused              = -54
	nvmlNotLoaded       = -56
	nvmlDriverTimeout   = -57
	gpusDetached        = -67
	commandNotFound     = 127 // of a shell, and of the dynamic loader
	commandNotExecuted  = 126
	notByStatus         = 256 // a status that no process has
	remedyHostEngineLog = "see the host engine's log: journalctl -u nvidia-dcgm"
)

// refusal maps how dcgmi ended to words. STREAM in cause and remedy stands for
// the name of the fields that it was asked for.
type refusal struct {
	code    int    // dcgmReturn_t, or an exit status
	phrase  string // in what it printed; for wrappers that hide the status
	failure source.Failure
	cause   string
	remedy  string
}

// refusals in order; see match.
var refusals = []refusal{
	{connectionInvalid, "onnect to host engine", source.HostEngineUnavailable,
		"the host engine does not answer",
		"start it: systemctl start nvidia-dcgm, or nv-hostengine; where dcgm-exporter runs one of its own, use --backend=prometheus"},
	{connectionInvalid, "Error getting values", source.HostEngineUnavailable,
		"the host engine went away",
		"see why it ended: journalctl -u nvidia-dcgm; and start it: systemctl start nvidia-dcgm"},
	{moduleNotLoaded, "is not currently loaded", source.ProfilingUnavailable,
		"the host engine has no module for the STREAM fields",
		"see what it has loaded: dcgmi modules -l; GeForce cards and GPUs before Volta have no profiling counters"},
	{profNotSupported, "Profiling is not supported", source.ProfilingUnavailable,
		"these GPUs have no profiling counters",
		"see what they support: dcgmi profile -l"},
	{requiresRoot, "to be running as root", source.PermissionDenied,
		"the host engine does not run as root, and must for the STREAM fields",
		"run it as root: systemctl restart nvidia-dcgm, or sudo nv-hostengine"},
	{profLibraryError, "third-party Profiling module", source.ReservationDenied,
		"the profiling counters are held by somebody else: Nsight, CUPTI, another host engine",
		"end that one, or leave it the counters: dcgmi profile --pause; another host engine may run inside a dcgm-exporter, then use --backend=prometheus"},
	{inUse, "affected resource is in use", source.ReservationDenied,
		"the profiling counters are in use",
		"find who uses them: nvidia-smi, ps -C nv-hostengine,nsys,ncu; it is tried again by itself"},
	{profMultiPass, "collected in a single pass", source.ReservationDenied,
		"the profiling fields that are asked for cannot be counted at once",
		"see who else asks for some, dcgmi profile -l for what fits together; it is tried again by itself"},
	{insufficientDriver, "requires a newer driver", source.Broken,
		"the driver is too old for some of the STREAM fields",
		"update the driver; see which it is: nvidia-smi"},
	{gpuLost, "GPU is lost", source.Broken,
		"a GPU is lost",
		"see what happened to it: dmesg | grep -i xid; and reset it or the node"},
	{groupIncompatible, "incompatible with each other", source.Broken,
		"the GPUs of this node are too different to be watched together for the STREAM fields",
		"watch some of them: --gpus"},
	{nvmlDriverTimeout, "NVML driver timeout", source.Broken,
		"the driver does not answer the host engine",
		"see whether it answers at all: nvidia-smi; then restart the host engine: systemctl restart nvidia-dcgm"},
	{nvmlNotLoaded, "NVML is not loaded", source.HostEngineUnavailable,
		"the host engine runs without the driver's library",
		"see that the driver works: nvidia-smi; then restart the host engine: systemctl restart nvidia-dcgm"},
	{paused, "modules are paused", source.HostEngineUnavailable,
		"the host engine is paused",
		"let it go on: dcgmi set --resume, or restart it: systemctl restart nvidia-dcgm"},
	{gpusDetached, "GPUs are detached", source.HostEngineUnavailable,
		"the host engine has let go of the GPUs",
		"attach them again, or restart it: systemctl restart nvidia-dcgm"},
	{noData, "No data returned", source.Broken,
		"the host engine has no readings of these GPUs",
		"see that it knows them: dcgmi discovery -l"},
	{maxLimit, "error while creating a", source.Broken,
		"the host engine has no room for another group",
		"see and remove what others left: dcgmi group -l; or restart it: systemctl restart nvidia-dcgm"},
	{badUsage, "trying to parse the command line", source.Unsupported,
		"dcgmi does not understand how we call it",
		"see its version, 2.3 or later is needed: dcgmi --version; and please report this"},
	{notByStatus, "PARSE ERROR", source.Unsupported,
		"dcgmi does not understand how we call it",
		"see its version, 2.3 or later is needed: dcgmi --version; and please report this"},
	{badParam, "to our entity group", source.Broken,
		"dcgmi refuses what it is asked to watch",
		"see which GPUs and MIG instances there are: dcgmi discovery -l and dcgmi discovery -c; and check --gpus"},
	{commandNotFound, "error while loading shared libraries", source.HostEngineUnavailable,
		"dcgmi cannot be run",
		"install DCGM again: datacenter-gpu-manager; and see what is missing: ldd $(command -v dcgmi)"},
	{commandNotExecuted, "ermission denied", source.PermissionDenied,
		"dcgmi may not be run",
		"let the user that runs kpulse-proxy run it: ls -l $(command -v dcgmi)"},
}

// unknownField is a field id that dcgmi does not know.
type unknownField int

func (f unknownField) Error() string { return fmt.Sprintf("field id %d is unknown to dcgmi", int(f)) }

// explain returns why the child of st, which is gone, has ended: err is what its
// output ended with.
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
			Remedy:  "see whether the host engine and the driver answer: dcgmi discovery -l; nvidia-smi; if they are only slow, raise --poll",
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
// killed it, and what it printed beside what it was asked for.
func refused(command, stream string, code int, sig syscall.Signal, text string) *source.Error {
	if row := match(code, text); row != nil {
		words := strings.NewReplacer("STREAM", stream)
		return &source.Error{
			Failure: row.failure,
			Cause:   command + ": " + words.Replace(row.cause) + quoted(text),
			Remedy:  words.Replace(row.remedy),
			Err:     row.wraps(),
		}
	}
	if code > 128 && code < 160 { // a shell's, or dcgmi's own, way to report it
		sig = syscall.Signal(code - 128)
	}
	how := "ended with exit status " + strconv.Itoa(code)
	remedy := "see what it says: dcgmi dmon -e 100 -c 1; dcgmi discovery -l; and " + remedyHostEngineLog
	if sig != 0 {
		how = "was ended by a signal (" + sig.String() + ")"
		remedy = "see whether the kernel ran out of memory: dmesg | grep -i oom; it is started again by itself"
	}
	return &source.Error{Failure: source.Broken, Cause: command + " " + how + quoted(text), Remedy: remedy}
}

// errFields is what refusals wrap that may be about some of the fields and not all.
var errFields = errors.New("fields refused")

// wraps returns what the error of a row wraps, nil for nothing.
func (row *refusal) wraps() error {
	switch row.code {
	case profNotSupported, profMultiPass, insufficientDriver, groupIncompatible:
		return errFields
	}
	return nil
}

// match returns the row of refusals that fits best, nil if none does: by status and
// phrase, else by status, else by phrase. badParam alone stands for too much: unless
// it is about a field, it is about an entity.
func match(code int, text string) *refusal {
	byStatus := func(row *refusal) bool { return row.code != notByStatus && code == row.code&0xff }
	byPhrase := func(row *refusal) bool { return strings.Contains(text, row.phrase) }
	for _, fits := range []func(*refusal) bool{
		func(row *refusal) bool { return byStatus(row) && byPhrase(row) },
		func(row *refusal) bool { return byStatus(row) && row.code != badParam },
		byPhrase,
		byStatus,
	} {
		for i := range refusals {
			if fits(&refusals[i]) {
				return &refusals[i]
			}
		}
	}
	return nil
}

// unknownFieldIn reads the id out of dcgmi's errorLine that it does not know one.
func unknownFieldIn(text string) (unknownField, bool) {
	_, rest, ok := strings.Cut(text, "Got invalid field ID. '")
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, "'")
	id, err := strconv.Atoi(digits)
	return unknownField(id), err == nil
}

// quoted is what dcgmi printed, behind a colon, "" if it printed nothing.
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
		e.Remedy = "use --backend=prometheus with the URL of an exporter, or look around with --backend=replay"
	case errors.Is(err, fs.ErrPermission):
		e.Failure = source.PermissionDenied
		e.Remedy = "let the user that runs kpulse-proxy run it: ls -l " + path + "; and see that its file system is not mounted noexec"
	case errors.Is(err, syscall.ENOEXEC):
		e.Failure = source.Unsupported
		e.Remedy = "see what it is: file " + path + "; and install DCGM for this machine's architecture"
	case errors.Is(err, fs.ErrNotExist):
		e.Failure = source.HostEngineUnavailable
		e.Remedy = "see whether the interpreter or the loader it names is there: file " + path
	}
	return e
}

package dcgm

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// errFields is wrapped by refusals that may concern only some of the fields.
var errFields = errors.New("fields refused")

// ending is the meaning of an end of dcgmi: by codes, which are dcgmReturn_t (DCGM's dcgm_structs.h) that dcgmi prints or
// exits with, and exit statuses of shells; or by a phrase that dcgmi prints instead. STREAM in cause and remedy is replaced
// by the name of the requested fields.
type ending struct {
	codes   []int
	phrase  string
	failure source.Failure
	err     error // that the error wraps
	cause   string
	remedy  string
}

const (
	seeHostEngineLog = "see the host engine's log: journalctl -u nvidia-dcgm"
	checkDriver      = "check that the driver works and has GPUs: nvidia-smi -L (a container must be given them); " +
		"then restart the host engine, which looks for both when it starts: systemctl restart nvidia-dcgm"
)

// endings are those that the program acts on, or that facts of DCGM 3.3 to 4.6 show to happen. Others have one
// sentence: see refused.
var endings = []ending{
	{[]int{-2}, "PARSE ERROR", source.Unsupported, nil, "dcgmi does not accept its arguments",
		"see its version, 2.3 or later is needed: dcgmi --version; and report this"},
	{[]int{127}, "error while loading shared libraries", source.HostEngineUnavailable, nil, "dcgmi cannot be run",
		"install DCGM again: datacenter-gpu-manager; and see what is missing: ldd $(command -v dcgmi)"},
	{nil, "Error getting values information. Return -21", source.HostEngineUnavailable, nil, "the host engine went away",
		seeHostEngineLog + "; and start it: systemctl start nvidia-dcgm"},
	{[]int{-21}, "Host engine connection invalid/disconnected", source.HostEngineUnavailable, nil, "the host engine does not answer",
		"start it: systemctl start nvidia-dcgm, or nv-hostengine; if dcgm-exporter runs its own, use --backend=prometheus"},
	{[]int{-54, -67}, "", source.HostEngineUnavailable, nil, "the host engine is paused, or has detached from the GPUs",
		"resume it: dcgmi set --resume, or restart it: systemctl restart nvidia-dcgm"},
	{[]int{-29}, "requires the host engine to be running as root", source.PermissionDenied, nil,
		"the host engine does not run as root, and must for the STREAM fields", "run it as root: systemctl restart nvidia-dcgm, or sudo nv-hostengine"},
	{[]int{-33, -36}, "serviced by a module of DCGM that is not currently loaded", source.ProfilingUnavailable, nil,
		"the host engine has no module for the STREAM fields, or these GPUs do not count them",
		"see what it has loaded, and what they count: dcgmi modules -l; dcgmi profile -l; GeForce cards and GPUs before Volta count none"},
	{[]int{-34, -37}, "The third-party Profiling module returned an unrecoverable error", source.ReservationDenied, nil,
		"another program holds the profiling counters: Nsight, CUPTI, another host engine",
		"end that program, or leave the counters to it: dcgmi profile --pause; another host engine may run inside a dcgm-exporter, then use --backend=prometheus"},
	{[]int{-38}, "cannot be collected in a single pass", source.ReservationDenied, errFields, "the requested profiling fields cannot be counted at once",
		"see which other programs use some, and which fields fit together: dcgmi profile -l; kpulse-proxy retries automatically"},
	{[]int{-6, -13, -23, -32, -44}, "Got error while creating a Field Group", source.Broken, errFields,
		"the host engine refuses some of the STREAM fields: it, the driver or a GPU does not know them",
		"install the same release of both: dcgmi --version; nv-hostengine --version; update an old driver: nvidia-smi"},
	{[]int{-18}, "GPU is lost", source.Broken, nil, "a GPU is lost, or must be reset",
		"see what happened to it: dmesg | grep -i xid; and reset it or the node; until then leave it out: --gpus"},
	{[]int{-14}, "No data returned from the hostengine", source.Broken, nil, "the host engine has no readings of these GPUs",
		"check that it knows them: dcgmi discovery -l"},
	{[]int{-35}, "The specified group is empty", source.Broken, nil, "the host engine sees no GPU: its driver does not work, or has no GPU for it", checkDriver},
	{[]int{-56, -57}, "NVML doesn't exist on this system", source.Broken, nil,
		"the host engine runs without the driver's library, or the driver does not answer it", checkDriver},
}

// endingOf returns the ending for an exit status, of which only eight bits of a code are left, and for what was
// printed; nil for none. A phrase has priority over a printed code, and this over the status, which wrappers hide.
func endingOf(status int, text string) *ending {
	find := func(is func(o *ending) bool) *ending {
		if i := slices.IndexFunc(endings, func(o ending) bool { return is(&o) }); i >= 0 {
			return &endings[i]
		}
		return nil
	}
	if o := find(func(o *ending) bool { return o.phrase != "" && strings.Contains(text, o.phrase) }); o != nil {
		return o
	}
	before := "" // codes stand as in "Return -35: …", "Result: -33: …" and "Got error -18 …"
	for word := range strings.FieldsSeq(text) {
		code, err := strconv.Atoi(strings.TrimRight(word, ":."))
		if err == nil && code < 0 && slices.Contains([]string{"return", "result", "error"}, before) {
			if o := find(func(o *ending) bool { return slices.Contains(o.codes, code) }); o != nil {
				return o
			}
		}
		before = strings.ToLower(strings.TrimRight(word, ":"))
	}
	return find(func(o *ending) bool {
		return status > 0 && slices.ContainsFunc(o.codes, func(code int) bool { return code&0xff == status })
	})
}

// refused explains the end of a command by its exit status, or the signal that killed it, and by its messages in
// text. stream is the name of the requested fields.
func refused(command, stream string, code int, sig syscall.Signal, text string) *source.Error {
	if o := endingOf(code, text); o != nil {
		words := strings.NewReplacer("STREAM", stream)
		return &source.Error{Failure: o.failure, Err: o.err, Cause: command + ": " + words.Replace(o.cause) + quoted(text), Remedy: words.Replace(o.remedy)}
	}
	if code > 128 && code < 160 { // how a shell or dcgmi reports a signal
		sig = syscall.Signal(code - 128)
	}
	e := &source.Error{Failure: source.Broken, Cause: command + " ended with exit status " + strconv.Itoa(code) + quoted(text),
		Remedy: "see what it says: dcgmi dmon -e 100 -c 1; dcgmi discovery -l; and " + seeHostEngineLog}
	if sig != 0 {
		e.Cause = command + " was killed by a signal (" + sig.String() + ")" + quoted(text)
		e.Remedy = "check whether the kernel ran out of memory: dmesg | grep -i oom; kpulse-proxy restarts it automatically"
	}
	return e
}

// unknownField is a field id that dcgmi does not know.
type unknownField int

func (f unknownField) Error() string { return fmt.Sprintf("field id %d is unknown to dcgmi", int(f)) }

// unstartable explains why a command that was found could not be started.
func unstartable(path string, err error) *source.Error {
	e := &source.Error{Failure: source.HostEngineUnavailable, Cause: path + " cannot be started: " + err.Error(), Err: err,
		Remedy: "see what it is: file " + path + "; and install DCGM for this machine's architecture"}
	switch {
	case errors.Is(err, errNotLinux):
		e.Failure, e.Cause = source.Unsupported, err.Error()
		e.Remedy = "use --backend=prometheus with the URL of an exporter, or try the demo with --backend=replay"
	case errors.Is(err, fs.ErrPermission):
		e.Failure = source.PermissionDenied
		e.Remedy = "let the user that runs kpulse-proxy run it: ls -l " + path + "; and check that its file system is not mounted noexec"
	}
	return e
}

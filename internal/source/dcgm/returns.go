package dcgm

import (
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Codes of dcgmReturn_t in DCGM's dcgm_structs.h, as far as the code uses them by name.
const (
	notSupported       = -6
	unknownFieldID     = -13
	gpuLost            = -18
	connectionInvalid  = -21
	groupIncompatible  = -23
	fieldOfOtherAPI    = -32
	profNotSupported   = -36
	profMultiPass      = -38
	insufficientDriver = -44
)

// returned is the meaning of a code of dcgmReturn_t for reads of GPUs. STREAM in cause and remedy
// is replaced by the name of the requested fields.
type returned struct {
	code int
	// words are DCGM's texts for the code, which it may print without the code:
	// errorString of 4.6.0 and 3.3.9, and dcgmi's own.
	words   []string
	failure source.Failure
	cause   string
	remedy  string
}

// vague reports whether any other code beside this one says more.
func (r *returned) vague() bool { return r.code == -1 || r.code == -3 }

// The remedies that several codes share.
const (
	seeHostEngineLog   = "see the host engine's log: journalctl -u nvidia-dcgm"
	restartHostEngine  = "restart the host engine: systemctl restart nvidia-dcgm"
	seeWhatTheySupport = "see what they support: dcgmi profile -l; the other fields are still read"
	seeDriver          = "check that the driver works and has GPUs: nvidia-smi -L (a container must be given them); then restart the host engine, which looks for both when it starts: systemctl restart nvidia-dcgm"
	retried            = "kpulse-proxy retries automatically; if the error persists, " + seeHostEngineLog
)

// returns has a row for each code with which discovery, profile and dmon can end: all
// of DCGM 4.6 except those of diagnostics, sync boost and the calls that create.
var returns = []returned{
	{-1, []string{"Bad parameter passed to function"}, source.Broken,
		"dcgmi refuses to watch the requested fields or devices",
		"see which GPUs and MIG instances there are: dcgmi discovery -l and dcgmi discovery -c; and check --gpus"},
	{-2, nil, source.Unsupported, // of dcgmi itself, for its command line
		"dcgmi does not accept its arguments",
		"see its version, 2.3 or later is needed: dcgmi --version; and report this"},
	{-3, []string{"Generic unspecified error"}, source.Broken,
		"the host engine fails and does not say why",
		seeHostEngineLog + "; and whether the driver works: nvidia-smi"},
	{-4, []string{"Out of memory error"}, source.Broken,
		"the host engine has no memory left",
		"see what else runs: free -m; then " + restartHostEngine},
	{-5, []string{"Setting not configured", "The Group is not found"}, source.Broken,
		"the host engine does not know the group that dcgmi made",
		retried},
	{notSupported, []string{"Feature not supported"}, source.Broken,
		"these GPUs, or their driver, do not support some of the STREAM fields",
		"see which driver it is: nvidia-smi; and what the GPUs support: dcgmi profile -l"},
	{-7, []string{"DCGM initialization error"}, source.HostEngineUnavailable,
		"DCGM does not start",
		seeHostEngineLog},
	{-8, []string{"NVML error"}, source.Broken,
		"the driver's library fails under the host engine",
		"check whether the driver works: nvidia-smi; and " + seeHostEngineLog},
	{-9, []string{"Object is in a pending state"}, source.Broken,
		"the host engine is still busy with an earlier request",
		retried},
	{-10, []string{"Object is in an undefined state"}, source.HostEngineUnavailable,
		"the host engine is not ready",
		retried},
	{-11, []string{"Timeout"}, source.Timeout,
		"the host engine does not answer in time",
		"check whether the driver answers: nvidia-smi; and " + seeHostEngineLog},
	{-12, []string{"API version mismatch"}, source.Broken,
		"the versions of dcgmi and the host engine do not match",
		"install the same release of both: dcgmi --version; nv-hostengine --version"},
	{unknownFieldID, []string{"Unknown field identifier", "Got error while creating a Field Group: Bad parameter passed to function"}, source.Broken,
		"the host engine does not know some of the STREAM fields: it is older than dcgmi",
		"install the same release of both: dcgmi --version; nv-hostengine --version"},
	{-14, []string{"No data is available", "No data returned from the hostengine"}, source.Broken,
		"the host engine has no readings of these GPUs",
		"check that it knows them: dcgmi discovery -l"},
	{-15, []string{"Only stale data is available"}, source.Broken,
		"the host engine has no fresh readings of these GPUs",
		"check whether the driver answers: nvidia-smi; then " + restartHostEngine},
	{-16, []string{"Field is not being watched"}, source.Broken,
		"the host engine no longer watches the STREAM fields",
		retried},
	{-17, []string{"No permission"}, source.PermissionDenied,
		"the host engine may not read the STREAM fields",
		"run it as root: systemctl restart nvidia-dcgm, or sudo nv-hostengine"},
	{gpuLost, []string{"GPU is lost"}, source.Broken,
		"a GPU is lost",
		"see what happened to it: dmesg | grep -i xid; and reset it or the node; until then leave it out: --gpus"},
	{-19, []string{"GPU requires reset"}, source.Broken,
		"a GPU must be reset",
		"drain the node and reset it: nvidia-smi --gpu-reset -i INDEX; until then leave it out: --gpus"},
	{-20, []string{"The requested function was not found"}, source.Broken,
		"the driver lacks a function that the host engine needs",
		"update the driver; see which it is: nvidia-smi"},
	{connectionInvalid, []string{"Host engine connection invalid/disconnected"}, source.HostEngineUnavailable,
		"the host engine does not answer",
		"start it: systemctl start nvidia-dcgm, or nv-hostengine; if dcgm-exporter runs its own, use --backend=prometheus"},
	{-22, []string{"This GPU is not supported by DCGM"}, source.Broken,
		"DCGM does not support one of the GPUs",
		"leave it out: --gpus; or read the GPUs without DCGM: --backend=nvml"},
	{groupIncompatible, []string{"The GPUs of this group are incompatible with each other"}, source.Broken,
		"the GPUs of this node are too different to be watched together for the STREAM fields",
		"watch some of them: --gpus"},
	{-24, []string{"Max limit reached"}, source.Broken,
		"the host engine has no room for another group",
		"list the groups that others left, and delete them: dcgmi group -l; or " + restartHostEngine},
	{-25, []string{"DCGM library could not be found"}, source.HostEngineUnavailable,
		"a library of DCGM is missing",
		"install DCGM again: datacenter-gpu-manager, or datacenter-gpu-manager-4-core"},
	{-29, []string{"Host engine is running as non-root", "Unable to watch one or more of the requested fields because doing so requires the host engine to be running as root"}, source.PermissionDenied,
		"the host engine does not run as root, and must for the STREAM fields",
		"run it as root: systemctl restart nvidia-dcgm, or sudo nv-hostengine"},
	{-31, []string{"An input argument is not large enough"}, source.Broken,
		"the versions of dcgmi and the host engine do not match",
		"install the same release of both: dcgmi --version; nv-hostengine --version"},
	{fieldOfOtherAPI, []string{"The given field ID is not supported by the API being called"}, source.Broken,
		"the host engine does not give some of the STREAM fields this way",
		"see its version: nv-hostengine --version; and report this"},
	{-33, []string{"This request is serviced by a module of DCGM that is not currently loaded"}, source.ProfilingUnavailable,
		"the host engine has no module for the STREAM fields",
		"see what it has loaded: dcgmi modules -l; GeForce cards and GPUs before Volta have no profiling counters"},
	{-34, []string{"The requested operation could not be completed because the affected resource is in use"}, source.ReservationDenied,
		"the profiling counters are in use",
		"find the programs that use them: nvidia-smi, ps -C nv-hostengine,nsys,ncu; kpulse-proxy retries automatically"},
	{-35, []string{"The specified group is empty"}, source.Broken,
		"the host engine sees no GPU: its driver does not work, or has no GPU for it",
		seeDriver},
	{profNotSupported, []string{"Profiling is not supported"}, source.ProfilingUnavailable,
		"these GPUs have no profiling counters",
		seeWhatTheySupport},
	{-37, []string{"The third-party Profiling module returned an unrecoverable error"}, source.ReservationDenied,
		"another program holds the profiling counters: Nsight, CUPTI, another host engine",
		"end that program, or leave the counters to it: dcgmi profile --pause; another host engine may run inside a dcgm-exporter, then use --backend=prometheus"},
	{profMultiPass, []string{"The requested profiling metrics cannot be collected in a single pass"}, source.ReservationDenied,
		"the requested profiling fields cannot be counted at once",
		"see which other programs use some, and which fields fit together: dcgmi profile -l; kpulse-proxy retries automatically"},
	{insufficientDriver, []string{"The installed driver version is insufficient", "Unable to watch one or more of the requested fields because doing so requires a newer driver"}, source.Broken,
		"the driver is too old for some of the STREAM fields",
		"update the driver; see which it is: nvidia-smi"},
	{-45, []string{"The specified GPU instance does not exist"}, source.Broken,
		"a MIG instance is gone",
		"see which there are: dcgmi discovery -c; kpulse-proxy asks for them again automatically"},
	{-46, []string{"The specified GPU compute instance does not exist"}, source.Broken,
		"a MIG compute instance is gone",
		"see which there are: dcgmi discovery -c; kpulse-proxy asks for them again automatically"},
	{-48, []string{"Detected an error in a 3rd-party library"}, source.Broken,
		"a library under the host engine fails",
		"check whether the driver works: nvidia-smi; and " + seeHostEngineLog},
	{-49, []string{"Not enough resources available"}, source.Broken,
		"the host engine has no room for the STREAM fields",
		"list the groups that others left, and delete them: dcgmi group -l; or " + restartHostEngine},
	{-54, []string{"The hostengine and all modules are paused"}, source.HostEngineUnavailable,
		"the host engine is paused",
		"resume it: dcgmi set --resume, or restart it: systemctl restart nvidia-dcgm"},
	{-56, []string{"Cannot perform the requested operation because NVML doesn't exist on this system"}, source.Broken,
		"the host engine runs without the driver's library",
		seeDriver},
	{-57, []string{"Cannot perform the requested operation because an NVML driver timeout error was detected"}, source.Broken,
		"the driver does not answer the host engine",
		"check whether it answers at all: nvidia-smi; then " + restartHostEngine},
	{-67, []string{"Cannot perform the requested operation because the GPUs are detached"}, source.HostEngineUnavailable,
		"the host engine has detached from the GPUs",
		"attach them again, or restart it: systemctl restart nvidia-dcgm"},
}

// returnOf returns the row for the end of a command, nil if that is not a return of DCGM. A
// printed code has priority over words, and words over the exit status, which is the lowest
// eight bits of the code and which wrappers hide. A vague code comes after specific words.
func returnOf(status int, text string) *returned {
	var vague *returned
	for _, code := range codesIn(text) {
		row := rowOf(func(r *returned) bool { return r.code == code })
		switch {
		case row != nil && !row.vague():
			return row
		case vague == nil:
			vague = row
		}
	}
	row := rowOf(func(r *returned) bool { return !r.vague() && r.saidIn(text) })
	if row == nil {
		row = vague
	}
	if row == nil {
		row = rowOf(func(r *returned) bool { return r.saidIn(text) })
	}
	if row == nil && status > 0 {
		row = rowOf(func(r *returned) bool { return r.code&0xff == status })
	}
	return row
}

// rowOf returns the first row that satisfies is, nil for none.
func rowOf(is func(*returned) bool) *returned {
	for i := range returns {
		if is(&returns[i]) {
			return &returns[i]
		}
	}
	return nil
}

// saidIn reports whether a line or sentence of text, or the part after a colon, begins
// with one of the row's words: elsewhere they may mean something else.
func (r *returned) saidIn(text string) bool {
	for _, words := range r.words {
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, words)
			if !ok {
				break
			}
			if before := text[:len(text)-len(after)-len(words)]; before == "" || strings.HasSuffix(before, "\n") ||
				strings.HasSuffix(before, ": ") || strings.HasSuffix(before, ". ") {
				return true
			}
			rest = after
		}
	}
	return false
}

// codesIn returns the codes in dcgmi's errors, such as "Return -35: …", "Result: -33: …" and
// "Got error -18 …".
func codesIn(text string) (codes []int) {
	before := ""
	for word := range strings.FieldsSeq(text) {
		digits, negative := strings.CutPrefix(strings.TrimRight(word, ":."), "-")
		code, err := strconv.Atoi(digits)
		switch strings.ToLower(strings.TrimRight(before, ":")) {
		case "return", "result", "error":
			if negative && err == nil && code > 0 {
				codes = append(codes, -code)
			}
		}
		before = word
	}
	return codes
}

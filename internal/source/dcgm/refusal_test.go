package dcgm

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// The texts are those of DCGM 4.6 and of 2.x, which printed no codes.
func TestRefused(t *testing.T) {
	tests := []struct {
		code int
		text string
		want source.Failure
		says string
	}{
		{235, "Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host engine. Host engine connection invalid/disconnected.\n", source.HostEngineUnavailable, "does not answer"},
		{235, "Error getting values information. Return -21: Host engine connection invalid/disconnected\n", source.HostEngineUnavailable, "went away"},
		{235, "", source.HostEngineUnavailable, "does not answer"},
		{1, "Error setting watches. Result: The third-party Profiling module returned an unrecoverable error\n", source.ReservationDenied, "dcgmi profile --pause"},
		{219, "Error setting watches. Result: -37: The third-party Profiling module returned an unrecoverable error\n", source.ReservationDenied, "dcgmi profile --pause"},
		{218, "", source.ReservationDenied, "at once"},
		{222, "", source.ReservationDenied, "in use"},
		{223, "", source.ProfilingUnavailable, "dcgmi modules -l"},
		{220, "", source.ProfilingUnavailable, "profile -l"},
		{227, "", source.PermissionDenied, "root"},
		{255, "Got error while creating a Field Group: Bad parameter passed to function\n", source.Broken, "the same release"}, // dcgmi 4.6.0, engine 3.3.9
		{232, "Got error while creating a Field Group: Max limit reached\n", source.Broken, "group -l"},
		{232, "Got error while creating a GPU group: -24 Max limit reached for the object\n", source.Broken, "dcgmi group -l"},
		{227, "Error setting watches. Result: -29: Unable to watch one or more of the requested fields because doing so requires the host engine to be running as root.\n\n", source.PermissionDenied, "sudo nv-hostengine"},
		{212, "Error setting watches. Result: -44: Unable to watch one or more of the requested fields because doing so requires a newer driver version than what is currently installed.\n\n", source.Broken, "update the driver"},
		{238, "Error setting watches. Result: -18: GPU is lost\n\n", source.Broken, "xid"},
		{233, "Error setting watches. Result: -23: The GPUs of this group are incompatible with each other for the requested operation\n\n", source.Broken, "--gpus"},
		{199, "Error setting watches. Result: -57: Cannot perform the requested operation because an NVML driver timeout error was detected. Verify NVML is responsive before restarting the hostengine.\n\n", source.Broken, "nvidia-smi"},
		{189, "Error setting watches. Result: -67: Cannot perform the requested operation because the GPUs are detached\n\n", source.HostEngineUnavailable, "detached"},
		{254, "Error: Invalid value for arg entity-id.\nAn error occurred trying to parse the command line.\n", source.Unsupported, "--version"},
		{1, "PARSE ERROR: Argument: -z\n", source.Unsupported, "--version"},
		{255, "Error: Got error -1 Bad parameter passed to function while adding GPU 99 to our entity group.\n", source.Broken, "--gpus"},
		{238, "Error: Got error -18 GPU is lost while adding GPU 2 to our entity group.\n", source.Broken, "a GPU is lost"},
		{251, "Enable to retrieve information about group. Error: -5: The Group is not found\n", source.Broken, "group"},
		{221, noGPUs, source.Broken, "the host engine sees no GPU"},
		{221, noGPUs, source.Broken, "driver"},
		{1, noGPUs, source.Broken, "the host engine sees no GPU"},
		{253, noDriver, source.Broken, "without the driver's library"},
		{253, "Error getting values information. Return -3: Generic unspecified error\n", source.Broken, "does not say why"},
		{200, "Error: Cannot get hierarchy information from the hostengine. Return: Cannot perform the requested operation because NVML doesn't exist on this system.\n", source.Broken, "nvidia-smi -L"},
		{202, "Error getting values information. Return -54: The hostengine and all modules are paused\n", source.HostEngineUnavailable, "is paused"},
		{1, "somebody said: my GPU is lost\n", source.Broken, "status 1"},
		{255, "ERROR: something\n", source.Broken, "--gpus"},
		{0, "\n\ndmon was stopped due to receiving a signal\n", source.Broken, `status 0: "dmon was stopped due to receiving a signal"`},
		{143, "", source.Broken, "terminated"},
		{7, "", source.Broken, "status 7"},
	}
	for _, tt := range tests {
		e := refused("dcgmi dmon (profiling fields)", "profiling", tt.code, 0, tt.text)
		if e.Failure != tt.want || !strings.Contains(e.Error(), tt.says) || e.Remedy == "" || !strings.HasPrefix(e.Cause, "dcgmi dmon (profiling fields)") {
			t.Errorf("%d %q: %s: %v; want %s with %q", tt.code, tt.text, e.Failure, e, tt.want, tt.says)
		}
	}
	if e := refused("dcgmi dmon (device fields)", "device", -1, 9, ""); e.Failure != source.Broken || !strings.Contains(e.Cause, "killed") || !strings.Contains(e.Remedy, "oom") {
		t.Errorf("%v", e)
	}
}

// What DCGM 4.6.0 and 3.3.9 print if the host engine has no driver.
const (
	noGPUs   = "Error getting values information. Return -35: The specified group is empty, and this operation is incompatible with an empty group\n"
	noDriver = "Unable to get GPU topology information. The entities in the output may be unsorted. Error: -56: Cannot perform the requested operation because NVML doesn't exist on this system.\n" +
		"Error getting values information. Return -3: Generic unspecified error\n"
)

// Each return code has one row, which is found by the printed code, by its words, and by
// the exit status.
func TestReturns(t *testing.T) {
	// Codes of diagnostics, sync boost and creation, and one that DCGM does not use.
	others := []int{-26, -27, -28, -30, -39, -40, -41, -42, -43, -47, -50, -51, -52, -53, -55, -58, -59, -60, -61, -62, -63, -64, -65, -66}
	rows := map[int]int{}
	for i := range returns {
		row := &returns[i]
		rows[row.code]++
		if row.cause == "" || row.remedy == "" || row.failure == "" {
			t.Errorf("%+v is incomplete", row)
		}
		texts := map[string]int{"": row.code & 0xff}
		for _, words := range row.words {
			texts["Error setting watches. Result: "+strconv.Itoa(row.code)+": "+words+"\n"] = 1
			texts["Error: Cannot get GPU list from remote node. Return: "+words+"\n"] = 1
			texts["Error: Unable to Get supported metric groups: "+words+".\n"] = 1
		}
		for text, status := range texts {
			if got := returnOf(status, text); got != row {
				t.Errorf("%d: status %d and %q lead to %+v", row.code, status, text, got)
			}
		}
	}
	for code := -1; code >= -67; code-- {
		if n := rows[code]; (n != 1) != slices.Contains(others, code) || n > 1 {
			t.Errorf("%d has %d rows", code, n)
		}
	}
}

func TestUnknownFieldIn(t *testing.T) {
	for text, want := range map[string]unknownField{
		"Error: Got invalid field ID. '1523'. See dcgm_fields.h for a list of valid field IDs.\n": 1523,
		"Error: Got invalid field ID. 'x'": 0,
		"Error: Got invalid field ID. '":   0,
		"":                                 0,
	} {
		id, ok := unknownFieldIn(text)
		if id != want || ok != (want != 0) {
			t.Errorf("%q: %d, %v", text, id, ok)
		}
	}
}

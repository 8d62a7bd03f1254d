package dcgmi

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// The texts are those of DCGM 4.6 and of 2.x, which gave no code in its text.
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
		{232, "Got error while creating a Field Group: Max limit reached\n", source.Broken, "group -l"},
		{254, "Error: Invalid value for arg entity-id.\nAn error occurred trying to parse the command line.\n", source.Unsupported, "--version"},
		{1, "PARSE ERROR: Argument: -z\n", source.Unsupported, "--version"},
		{255, "Error: Got error -5 No data while adding GPU 99 to our entity group.\n", source.Broken, "--gpus"},
		{255, "ERROR: something\n", source.Broken, "--gpus"},
		{0, "\n\ndmon was stopped due to receiving a signal\n", source.Broken, `status 0: "dmon was stopped due to receiving a signal"`},
		{143, "", source.Broken, "terminated"},
		{7, "", source.Broken, "status 7"},
	}
	for _, tt := range tests {
		e := refused("dcgmi dmon (profiling fields)", "profiling", tt.code, 0, tt.text)
		if e.Failure != tt.want || !strings.Contains(e.Error(), tt.says) || e.Remedy == "" || !strings.HasPrefix(e.Cause, "dcgmi dmon (profiling fields)") {
			t.Errorf("%d %q: %s: %v; want %s that says %q", tt.code, tt.text, e.Failure, e, tt.want, tt.says)
		}
	}
	if e := refused("dcgmi dmon (device fields)", "device", -1, 9, ""); e.Failure != source.Broken || !strings.Contains(e.Cause, "killed") || !strings.Contains(e.Remedy, "oom") {
		t.Errorf("%v", e)
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

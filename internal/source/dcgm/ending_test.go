package dcgm

import (
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
		{222, "", source.ReservationDenied, "another program holds"},
		{223, "", source.ProfilingUnavailable, "dcgmi modules -l"},
		{220, "", source.ProfilingUnavailable, "profile -l"},
		{227, "", source.PermissionDenied, "root"},
		{255, "Got error while creating a Field Group: Bad parameter passed to function\n", source.Broken, "the same release"}, // dcgmi 4.6.0, engine 3.3.9
		{227, "Error setting watches. Result: -29: Unable to watch one or more of the requested fields because doing so requires the host engine to be running as root.\n\n", source.PermissionDenied, "sudo nv-hostengine"},
		{212, "Error setting watches. Result: -44: Unable to watch one or more of the requested fields because doing so requires a newer driver version than what is currently installed.\n\n", source.Broken, "update an old driver"},
		{238, "Error setting watches. Result: -18: GPU is lost\n\n", source.Broken, "xid"},
		{233, "Error setting watches. Result: -23: The GPUs of this group are incompatible with each other for the requested operation\n\n", source.Broken, "some of the profiling fields"},
		{199, "Error setting watches. Result: -57: Cannot perform the requested operation because an NVML driver timeout error was detected. Verify NVML is responsive before restarting the hostengine.\n\n", source.Broken, "nvidia-smi"},
		{189, "Error setting watches. Result: -67: Cannot perform the requested operation because the GPUs are detached\n\n", source.HostEngineUnavailable, "detached"},
		{254, "Error: Invalid value for arg entity-id.\nAn error occurred trying to parse the command line.\n", source.Unsupported, "--version"},
		{1, "PARSE ERROR: Argument: -z\n", source.Unsupported, "--version"},
		{255, "Error: Got error -1 Bad parameter passed to function while adding GPU 99 to our entity group.\n", source.Broken, "status 255"},
		{238, "Error: Got error -18 GPU is lost while adding GPU 2 to our entity group.\n", source.Broken, "a GPU is lost"},
		{221, noGPUs, source.Broken, "the host engine sees no GPU"},
		{221, noGPUs, source.Broken, "driver"},
		{1, noGPUs, source.Broken, "the host engine sees no GPU"},
		{253, noDriver, source.Broken, "without the driver's library"},
		{200, "Error: Cannot get hierarchy information from the hostengine. Return: Cannot perform the requested operation because NVML doesn't exist on this system.\n", source.Broken, "nvidia-smi -L"},
		{202, "Error getting values information. Return -54: The hostengine and all modules are paused\n", source.HostEngineUnavailable, "is paused, or has detached"},
		{255, "ERROR: something\n", source.Broken, "status 255: \"ERROR: something\""},
		{232, "Got error while creating a GPU group: -24 Max limit reached for the object\n", source.Broken, "status 232: "},
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

func TestTail(t *testing.T) {
	var text strings.Builder
	var tl tail
	for i := range 3000 {
		chunk := strings.Repeat(string(rune('a'+i%26)), i%37)
		text.WriteString(chunk)
		if n, err := tl.Write([]byte(chunk)); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
		whole := text.String()
		if want := whole[max(0, len(whole)-tailSize):]; tl.String() != want {
			t.Fatalf("after %d bytes the tail is wrong", len(whole))
		}
	}
	tl.Write([]byte(strings.Repeat("x", 3*tailSize) + "END"))
	if got := tl.String(); len(got) != tailSize || !strings.HasSuffix(got, "xEND") {
		t.Errorf("a long write left %d bytes", len(got))
	}
}

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":           "",
		" \n\n":      "",
		"one\ntwo\n": `: "two"`,
		"warming up\nError: no connection\nError: second\ngoodbye\n": `: "Error: no connection"`,
		"a\x1b[31mb\tc\xff":      ": \"a [31mb c\uFFFD\"",
		strings.Repeat("é", 200): `: "` + strings.Repeat("é", 118) + `…"`,
	} {
		if got := quoted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

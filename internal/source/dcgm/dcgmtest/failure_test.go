package dcgmtest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func itoa(n int) string { return strconv.Itoa(n) }

const lost = "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n"

// header155 is the header of 4.6 for field 155.
const header155 = "#Entity         POWER             \nID               W                \n"

// TestFailures checks the text, the stream and the exit code of each failure.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name           string
		failure        dcgmtest.Failure
		args           string
		stdout, stderr string
		code           int
	}{
		{"no host engine", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, "dmon -e 155",
			"Error: unable to establish a connection to the specified host: localhost\n" + lost, "", 235},
		{"no host engine elsewhere", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, "discovery -l --host node7:5555",
			"Error: unable to establish a connection to the specified host: node7:5555\n" + lost, "", 235},
		{"no library", dcgmtest.Failure{Kind: dcgmtest.InitFailed}, "discovery -l",
			"Error: unable to initialize DCGM\n" + lost, "", 235},
		{"host engine dies", dcgmtest.Failure{Kind: dcgmtest.HostEngineDies}, "dmon -e 155",
			header155, "Error getting values information. Return -21: Host engine connection invalid/disconnected\n", 235},
		{"no data", dcgmtest.Failure{Kind: dcgmtest.NoData}, "dmon -e 155",
			header155, "No data returned from the hostengine.\n", 242},
		{"bad field", dcgmtest.Failure{}, "dmon -e 155,9999",
			"", "Error: Got invalid field ID. '9999'. See dcgm_fields.h for a list of valid field IDs.\n", 255},
		{"no such field", dcgmtest.Failure{}, "dmon -e 397",
			"", "Error: Got invalid field ID. '397'. See dcgm_fields.h for a list of valid field IDs.\n", 255},
		{"no such board", dcgmtest.Failure{}, "dmon -e 155 -i 99",
			"", "Error: Got error -1 Bad parameter passed to function while adding GPU 99 to our entity group.\n", 255},
		{"no such instance", dcgmtest.Failure{}, "dmon -e 155 -i i:3",
			"", "Error: Got error -1 Bad parameter passed to function while adding GPU_I 3 to our entity group.\n", 255},
		{"no boards listed", dcgmtest.Failure{Kind: dcgmtest.ListRefused, Code: -21}, "discovery -l",
			"Error: Cannot get GPU list from remote node. Return: Host engine connection invalid/disconnected\n", "", 235},
		{"short version", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, "--version", "\ndcgmi  version: 4.6.0\n\n", "", 0},
		{"unexplained", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 3, Text: "boo\n"}, "dmon -e 155", header155, "boo\n", 3},
		{"another command's", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown, Command: "discovery"}, "dmon -e 155,9999",
			"", "Error: Got invalid field ID. '9999'. See dcgm_fields.h for a list of valid field IDs.\n", 255},
	} {
		s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(1), Failures: []dcgmtest.Failure{test.failure}}
		if got, want := run(t, s, test.args), (output{test.stdout, test.stderr, test.code}); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, want)
		}
	}
}

// TestWatchRefused checks that the header comes first, and that only profiling
// fields are refused if the failure says so.
func TestWatchRefused(t *testing.T) {
	for code, want := range map[int]struct {
		exit int
		text string
	}{
		-33: {223, "This request is serviced by a module of DCGM that is not currently loaded"},
		-37: {219, "The third-party Profiling module returned an unrecoverable error"},
		-38: {218, "The requested profiling metrics cannot be collected in a single pass"},
	} {
		s := dcgmtest.Scenario{Version: "3.3.9", GPUs: dcgmtest.Boards(1)}
		s.Failures = []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Code: code, Profiling: true}}
		exe := dcgmtest.Install(t, s)
		got := runExe(t, exe, "dmon -e 1001")
		wanted := output{"#Entity   GRACT        \nID                     \n",
			fmt.Sprintf("Error setting watches. Result: %d: %s\n\n", code, want.text), want.exit}
		if got != wanted {
			t.Errorf("%d:\ngot  %+v\nwant %+v", code, got, wanted)
		}
		if got := runExe(t, exe, "dmon -e 155 -c 1"); got.code != 0 || strings.Count(got.stdout, "\n") != 3 {
			t.Errorf("%d without profiling fields: %+v", code, got)
		}
	}
}

// TestReleases checks that fields are unknown before their first release.
func TestReleases(t *testing.T) {
	for _, test := range []struct {
		version, field string
		code           int
	}{
		{"4.2.0", "843", 255}, {"4.2.3", "843", 0}, {"3.3.8", "385", 255}, {"3.3.9", "385", 0},
		{"4.4.2", "1523", 255}, {"4.5.3", "1523", 0}, {"4.5.3", "1091", 255}, {"4.6.0", "1091", 0},
	} {
		if got := run(t, node(test.version, dcgmtest.Boards(1)...), "dmon -c 1 -e "+test.field); got.code != test.code {
			t.Errorf("%s in %s: %+v, want exit %d", test.field, test.version, got, test.code)
		}
	}
}

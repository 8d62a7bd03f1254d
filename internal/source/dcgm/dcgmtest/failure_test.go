package dcgmtest_test

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

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
		{"host engine dies", dcgmtest.Failure{Kind: dcgmtest.HostEngineDies}, "dmon -e 155",
			header155, "Error getting values information. Return -21: Host engine connection invalid/disconnected\n", 235},
		{"a field that the release lacks", dcgmtest.Failure{Kind: dcgmtest.UnknownField, Field: 1523}, "dmon -e 155,1523",
			"", "Error: Got invalid field ID. '1523'. See dcgm_fields.h for a list of valid field IDs.\n", 255},
		{"no boards listed", dcgmtest.Failure{Kind: dcgmtest.ListRefused, Code: -21}, "discovery -l",
			"Error: Cannot get GPU list from remote node. Return: Host engine connection invalid/disconnected\n", "", 235},
		{"short version", dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, "--version", "\ndcgmi  version: 4.6.0\n\n", "", 0},
		{"refused", dcgmtest.Failure{Kind: dcgmtest.WatchRefused, Code: -37, Profiling: true}, "dmon -e 1001",
			"#Entity         GRACT        \nID                           \n",
			"Error setting watches. Result: -37: The third-party Profiling module returned an unrecoverable error\n\n", 219},
		{"no data", dcgmtest.Failure{Kind: dcgmtest.NoData}, "dmon -e 155",
			header155, "No data returned from the hostengine.\n", 242},
		{"unexplained", dcgmtest.Failure{Kind: dcgmtest.Exit, Code: 3, Text: "boo\n"}, "dmon -e 155", header155, "boo\n", 3},
	} {
		s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(1), Failures: []dcgmtest.Failure{test.failure}}
		if got, want := run(t, s, test.args), (output{test.stdout, test.stderr, test.code}); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, want)
		}
	}
}

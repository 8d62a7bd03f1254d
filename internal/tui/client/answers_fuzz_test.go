package client

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// FuzzEvents: whatever a proxy lists as events, unknown words become the first of their table,
// and no text can move the cursor.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"events":[{"time":"2026-11-23T13:00:00Z","kind":"xid","hostname":"n","gpu":"0","uuid":"GPU-0","xid":79,"count":2,"severity":"fatal","action":"reset_gpu","text":"fell off the bus"}]}`))
	f.Add([]byte(`{"events":[{"kind":"raised","condition":"pcie_replay","state":"warn","process":"a\u001b[2Jb"},{"sxid":11001,"xid":1}]}`))
	f.Add([]byte(`{"events":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := parseEvents("http://localhost:9401", body)
		if err == nil && all == nil {
			t.Error("the list is nil")
		}
		for _, e := range all {
			if e.Severity >= canonical.NumSeverities || e.Action >= canonical.NumActions || e.Condition > canonical.NumConditions || e.State >= canonical.NumHealth {
				t.Errorf("%+v has words out of range", e)
			}
			isOneLine(t, e.Hostname, e.GPU, e.PCIBusID, e.Text, e.Process)
		}
	})
}

// FuzzProcesses: whatever a proxy lists as processes, no text can move the cursor.
func FuzzProcesses(f *testing.F) {
	f.Add([]byte(`{"processes":[{"hostname":"n","gpu":"0","uuid":"GPU-0","mig_instance":"7","pid":42,"user":"a","command":"python\u0007","used_memory_bytes":1048576}]}`))
	f.Add([]byte(`{"processes":[{"used_memory_bytes":null},{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := parseProcesses("http://localhost:9401", body)
		if err != nil && all != nil {
			t.Errorf("%v beside %v", all, err)
		}
		for _, p := range all {
			isOneLine(t, p.User, p.Group, p.Command)
		}
	})
}

func isOneLine(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q is not one line of text", text)
		}
	}
}

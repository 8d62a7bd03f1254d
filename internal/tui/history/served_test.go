package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

func TestMerge(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	nodes := []*client.Node{{URL: "a", Name: "node-a", Hiding: client.Hiding{HiddenBoards: []client.Key{{Node: "a", UUID: "GPU-other"}}}}, {URL: "b", Name: "node-b"}}
	derived := []Event{
		{At: at(2), Key: client.Key{Node: "a"}, Health: true, Text: "of a, derived"},
		{At: at(4), Key: client.Key{Node: "b"}, Health: true, Text: "of b"},
		{At: at(15), Node: "node-a", Text: "stale"},
	}
	xid := canonical.Event{At: at(2), Kind: canonical.EventXID, GPU: "0", Code: 79, Count: 2, Severity: canonical.SeverityFatal, Action: canonical.ActionRebootNode, Text: "fell off", PID: 7, Process: "python"}
	served := []client.ServedEvent{
		{Event: xid},
		{Key: client.Key{Node: "a", UUID: "GPU-other"}, Event: xid},
		{Event: canonical.Event{At: at(10), Kind: canonical.EventXID, GPU: "0", Code: 45, Count: 1, Severity: canonical.SeveritySympathetic, PID: 8}},
		{Event: canonical.Event{At: at(11), Kind: canonical.EventSXID, PCIBusID: "0000:05:00", Code: 12028, Severity: canonical.SeverityWarning, Text: "Non-fatal", Process: "x"}},
		{Event: canonical.Event{At: at(12), Kind: canonical.EventRaised, GPU: "0", Condition: canonical.CondXIDFatal, State: canonical.HealthCrit, Action: canonical.ActionResetGPU}},
		{Event: canonical.Event{At: at(13), Kind: canonical.EventResolved, GPU: "0", Code: 79, Text: "an operator says so"}},
		{Event: canonical.Event{At: at(13), Kind: canonical.EventCleared, GPU: "0", Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}},
		{Event: canonical.Event{At: at(14), Kind: canonical.EventReset, GPU: "0", Text: "energy fell"}},
		{Event: canonical.Event{At: at(16), Kind: canonical.EventCleared, GPU: "0", Condition: canonical.NumConditions}},
		{Event: canonical.Event{At: at(17), Kind: "of_tomorrow", GPU: "0", Text: "something"}},
	}
	var got []string
	for _, e := range Merge(derived, nodes, [][]client.ServedEvent{served, nil}) {
		got = append(got, fmt.Sprintf("%d %s|%s|%s", e.At.Unix(), e.GPU, e.State, e.Text))
	}
	want := []string{
		"2 GPU 0|crit|XID 79 ×2 (reboot node): fell off [python 7]",
		"4 |ok|of b",
		"10 GPU 0|ok|XID 45 [pid 8]",
		"11 0000:05:00|warn|SXID 12028: Non-fatal [x]",
		"12 GPU 0|crit|xid_fatal is raised: reset GPU",
		"13 GPU 0|ok|XID 79 is resolved: an operator says so",
		"13 GPU 0|ok|xid_fatal is cleared",
		"14 GPU 0|ok|was reset: energy fell",
		"15 |ok|stale",
		"16 GPU 0|ok|a condition that this version does not know is cleared",
		"17 GPU 0|ok|of_tomorrow: something",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

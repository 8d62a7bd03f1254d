package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestListEvents(t *testing.T) {
	const body = `{"events":[
{"time":"2026-01-02T03:04:05Z","kind":"xid","hostname":"n","gpu":"0","uuid":"GPU-a","pci_bus_id":"0000:b5:00","xid":79,"count":2,"severity":"fatal","action":"reboot_node","text":"fell\u001b[2J off","pid":7,"process":"python"},
{"time":"2026-01-02T03:04:06Z","kind":"sxid","pci_bus_id":"0000:05:00","sxid":12028,"severity":"new"},
{"time":"2026-01-02T03:04:07Z","kind":"raised","uuid":"GPU-a","condition":"xid_fatal","state":"crit","action":"reset_gpu"},
{"time":"2026-01-02T03:04:08Z","kind":"cleared","uuid":"GPU-a","condition":"of_tomorrow","state":"warn"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/proxy/events":
			fmt.Fprint(w, body)
		case "/page/events":
			fmt.Fprint(w, "<html>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	lists := ListEvents(t.Context(), []Target{{URL: server.URL + "/proxy/metrics"}, {URL: server.URL + "/old/metrics"}, {URL: server.URL + "/page/metrics"}})
	if len(lists) != 3 || lists[1] != nil || lists[2] != nil || len(lists[0]) != 4 {
		t.Fatalf("%+v", lists)
	}
	e := lists[0][0]
	want := canonical.Event{
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: canonical.EventXID, Hostname: "n", GPU: "0", UUID: "GPU-a", PCIBusID: "0000:b5:00",
		Code: 79, Count: 2, Severity: canonical.SeverityFatal, Action: canonical.ActionRebootNode, Text: "fell [2J off", PID: 7, Process: "python",
		Condition: canonical.NumConditions,
	}
	if e.Event != want {
		t.Errorf("%+v", e.Event)
	}
	if key := keyOf(server.URL+"/proxy/metrics", &canonical.Device{UUID: "GPU-a"}); e.Key != key {
		t.Errorf("of %v, want %v", e.Key, key)
	}
	if e := lists[0][1]; e.Code != 12028 || e.Severity != canonical.SeverityNone || e.PCIBusID != "0000:05:00" {
		t.Errorf("%+v", e)
	}
	if e := lists[0][2]; e.Condition != canonical.CondXIDFatal || e.State != canonical.HealthCrit {
		t.Errorf("%+v", e)
	}
	if e := lists[0][3]; e.Condition != canonical.NumConditions {
		t.Errorf("an unknown condition is %d", e.Condition)
	}
}

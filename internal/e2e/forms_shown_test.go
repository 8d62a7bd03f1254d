package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// TestFormsShowTheSame feeds the terminal the pages of a random history in both forms: its state is
// the same for both, and agrees with the CSV of the same reading.
func TestFormsShowTheSame(t *testing.T) {
	t.Parallel()
	columns, err := export.ParseColumns("gpu_id,gpu_workload_class,health,gpu_health_condition,real_util_pct,sm_active_pct,gpu_temp_c,workloads", nil)
	if err != nil {
		t.Fatal(err)
	}
	raised, acts, held := 0, 0, 0
	tell(t, 20, 15*time.Second, time.Hour, func(since time.Duration, snap *canonical.Snapshot, pages map[string]string) {
		lean, full := terminalOf(t, pages["lean"]), terminalOf(t, pages["full"])
		if got, want := words(lean), words(full); got != want && !t.Failed() {
			t.Errorf("after %v: the lean form is\n%s\nthe full form\n%s", since, got, want)
		}
		var text bytes.Buffer
		if err := export.NewCSV(&text, columns).Write(&export.View{Snapshot: snap}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&text).ReadAll()
		if err != nil || len(rows) != 1+len(lean.GPUs) {
			t.Fatalf("after %v: %d rows of %d GPUs (%v)", since, len(rows), len(lean.GPUs), err)
		}
		for i, g := range lean.GPUs {
			checkRow(t, rows[1+i], g)
			raised, held = raised+len(g.Raised), held+len(g.Allocations)
			if g.Action > canonical.ActionNone && g.Action < canonical.NumActions {
				acts++
			}
		}
	})
	if t.Logf("%d conditions, %d actions and %d holders", raised, acts, held); min(raised, acts, held) < 20 {
		t.Error("too few conditions, actions or holders")
	}
}

// terminalOf returns what the terminal reads from a page.
func terminalOf(t *testing.T, page string) *client.Node {
	t.Helper()
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }
	node := client.Fetch(context.Background(), client.Target{URL: client.InProcess, Client: client.ForHandler(http.HandlerFunc(answer))})
	if !node.Up || node.Skipped > 0 {
		t.Fatalf("%s; %d lines are malformed", node.Err, node.Skipped)
	}
	return node
}

// words formats all that the terminal knows of a node.
func words(n *client.Node) string {
	var b strings.Builder
	for _, g := range n.GPUs {
		fmt.Fprintf(&b, "%+v\n", *g)
	}
	rest := *n
	rest.GPUs, rest.FetchedAt = nil, time.Time{}
	fmt.Fprintf(&b, "%+v\n", rest)
	return b.String()
}

// checkRow compares a row of CSV with what the terminal knows of the GPU.
func checkRow(t *testing.T, row []string, g *client.GPU) {
	t.Helper()
	var conditions, holders []string
	for _, r := range g.Raised {
		conditions = append(conditions, r.Condition.String())
	}
	for _, a := range g.Allocations {
		holders = append(holders, a.Namespace+"/"+a.Pod+"/"+a.Container)
	}
	raised := strings.Split(row[3], ";")
	slices.Sort(raised)
	slices.Sort(conditions)
	for i, c := range []struct{ cell, want string }{
		{row[0], g.ID()}, {row[1], canonical.Classes[g.Class].Name}, {row[2], strings.ToUpper(g.Health.String())},
		{strings.Join(raised, ";"), strings.Join(conditions, ";")}, {row[7], strings.Join(holders, ";")},
	} {
		if c.cell != c.want {
			t.Errorf("GPU %s, cell %d: CSV says %q, the terminal %q", g.ID(), i, c.cell, c.want)
		}
	}
	for i, v := range []float64{100 * g.RealUtilization, 100 * g.Values[canonical.SMActive], g.Values[canonical.Temperature]} {
		cell, err := strconv.ParseFloat(row[4+i], 64)
		if absent := row[4+i] == ""; absent != math.IsNaN(v) || !absent && (err != nil || math.Abs(cell-v) > .0051) {
			t.Errorf("GPU %s, number %d: CSV says %q, the terminal %v", g.ID(), i, row[4+i], v)
		}
	}
}

// TestContainersOfBothForms: /container/metrics is the same in both forms, even for verdicts that
// the lean form omits.
func TestContainersOfBothForms(t *testing.T) {
	t.Parallel()
	text, want := containerPage()
	lists := map[string]string{}
	for form := range forms {
		up, _ := changingUpstream(t, text)
		c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--poll=0", "--series="+form)
		list := containersOf(t, c, "")
		if len(list) != len(want) {
			t.Errorf("%s: %d objects, want %d", form, len(list), len(want))
		}
		for i := range list {
			list[i].Timestamp = time.Time{}
		}
		said, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		lists[form] = string(said)
	}
	if lists["lean"] != lists["full"] || strings.Count(lists["lean"], `"recommended_action":"none"`) != len(want) {
		t.Errorf("lean: %s\nfull: %s", lists["lean"], lists["full"])
	}
}

// TestExportHasNoForm: --export writes the same in both forms.
func TestExportHasNoForm(t *testing.T) {
	t.Parallel()
	written := map[string]string{}
	for form := range forms {
		rows, _ := exported(t, []string{"HOME=/", "KPULSE_SERIES=" + form}, "--source="+captureDir+"/every-field.prom", "--once", "--export=all+")
		if len(rows) < 2 {
			t.Fatalf("%d rows", len(rows))
		}
		at := slices.Index(rows[0], "timestamp")
		for _, row := range rows {
			row[at] = ""
		}
		written[form] = fmt.Sprint(rows)
	}
	if written["lean"] != written["full"] {
		t.Errorf("lean: %s\nfull: %s", written["lean"], written["full"])
	}
}

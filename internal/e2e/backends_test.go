package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// healthFields are the rack and health readings that not every backend provides.
var healthFields = []canonical.Field{
	canonical.RecoveryAction, canonical.TemperatureMargin, canonical.SRAMThresholdExceeded, canonical.MemoryUnrepairable,
	canonical.MemoryBanksMax, canonical.MemoryBanksHigh, canonical.MemoryBanksPartial, canonical.MemoryBanksLow, canonical.MemoryBanksNone,
	canonical.FabricHealth, canonical.FabricError,
	canonical.NVLinkReceiveMalformed, canonical.NVLinkReceiveDropped, canonical.NVLinkReceiveErrors, canonical.NVLinkReceiveRemote,
	canonical.NVLinkReceiveGeneral, canonical.NVLinkIntegrityErrors, canonical.NVLinkTransmitDiscards, canonical.NVLinkRecoveriesDone,
	canonical.NVLinkRecoveriesFailed, canonical.NVLinkRecoveryEvents, canonical.NVLinkSymbolErrors, canonical.NVLinkEffectiveErrors,
	canonical.NVLinkSymbolBER, canonical.NVLinkEffectiveBER, canonical.NVLinksActive,
	canonical.C2CLinks, canonical.C2CInterrupts, canonical.C2CReplays, canonical.C2CReplaysBackToBack,
}

// backendRow is a row of usingPage's table of what each backend reads.
type backendRow struct{ series, labels, ids, exporter, dcgm, nvml string }

// yes returns a cell of the table.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return "–"
}

// backendRowOf returns the row of a reading, from the tables that the backends use.
func backendRowOf(t *testing.T, field canonical.Field) backendRow {
	info := canonical.Fields[field]
	r := backendRow{series: info.Name, labels: strings.ReplaceAll(info.Labels, `"`, "")}
	if field == canonical.NVLinksActive { // DCGM has a field per link
		r.ids, r.exporter, r.dcgm, r.nvml = "of each link", "yes", yes(false), yes(true)
		return r
	}
	for i := range dcgm.Fields {
		f := &dcgm.Fields[i]
		if reading, known := translate.FieldOf(f.Family); known && reading == field {
			r.ids, r.exporter, r.dcgm, r.nvml = fmt.Sprint(f.ID), "yes", yes(f.InDmon()), yes(nvml.Gives(f.ID))
			return r
		}
	}
	t.Errorf("%s is not a field of DCGM", r.series)
	return r
}

// backendTable returns usingPage's table: readings of one family with equal columns share a row.
func backendTable(t *testing.T) string {
	rows := []backendRow{
		{"gpu_xid_errors_total", "", "230", "each XID, with `DCGM_EXP_XID_ERRORS_COUNT` or `…_TOTAL` among its counters; else changes of the last code", "changes of the last code", "each XID, none lost between readings"},
		{"gpu_fabric_info", "clique_id", "173", "yes", yes(dcgm.Fields[dcgm.FieldOf([]byte(dcgm.CliqueColumn))].InDmon()), yes(nvml.Gives(173))},
		{"gpu_fabric_info", "cluster_uuid", "172", "if the counters file makes it a label", "– (cut in dmon)", "yes"},
	}
	for _, field := range healthFields {
		r := backendRowOf(t, field)
		last := &rows[len(rows)-1]
		if r.series == last.series && r.exporter == last.exporter && r.dcgm == last.dcgm && r.nvml == last.nvml {
			_, value, _ := strings.Cut(r.labels, "=")
			last.ids, last.labels = last.ids+", "+r.ids, last.labels+", "+value
			continue
		}
		rows = append(rows, r)
	}
	var text strings.Builder
	text.WriteString("| series | DCGM's field | an exporter | `--backend=dcgm` | `--backend=nvml` |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.series = "`kpulse_" + r.series + "`"; r.labels != "" {
			r.series += " " + r.labels
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", r.series, r.ids, r.exporter, r.dcgm, r.nvml)
	}
	return text.String()
}

// TestPagesListBackends checks the table of what each backend reads against the backends' own
// tables. TestRealStackWays checks it against NVIDIA's programs.
func TestPagesListBackends(t *testing.T) {
	if !nvml.Gives(150) {
		t.Skip("built without cgo, and so without NVML")
	}
	checkTable(t, usingPage, "backends", backendTable(t))
}

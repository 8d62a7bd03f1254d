package recording

import (
	_ "embed" // csv_columns.csv
	"strconv"
	"strings"
	"sync"
)

// csvReading is a column of the CSV with a reading, and the family in which dcgm-exporter
// 4.8, or a local source, serves it. A value of the family is that of the column,
// multiplied by times and divided by over.
type csvReading struct {
	column, family string
	times, over    float64
}

// csvReadings returns the columns of --export with readings. Those up to tc_qmma_pct are KempnerPulse's, in its units; the
// others are named after our series, in SI units. Columns that are derived from others (real_util_pct, status, health,
// mem_used_pct) are recomputed instead.
var csvReadings = sync.OnceValue(func() (all []csvReading) {
	for line := range strings.Lines(csvColumnsFile) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		times, err1 := strconv.ParseFloat(cells[2], 64)
		over, err2 := strconv.ParseFloat(cells[3], 64)
		if err1 == nil && err2 == nil { // the header is no reading
			all = append(all, csvReading{cells[0], cells[1], times, over})
		}
	}
	return all
})

//go:embed csv_columns.csv
var csvColumnsFile string

// The only counter for which KempnerPulse's columns have the rate.
const (
	csvReplayRate  = "pcie_replay_rate_s"
	csvReplayTotal = "gpu_pcie_replays_total"
)

// csvWord is a column that describes a device, or says when it was read.
type csvWord int

const (
	csvGPU csvWord = iota
	csvUUID
	csvHostname
	csvInstance
	csvProfile
	csvModel     // short
	csvModelName // in full
	csvDevice
	csvPCIBusID
	csvDriver
	csvStatus
	csvTimestamp
	numCSVTexts
)

// csvTexts are the texts of a row.
type csvTexts [numCSVTexts]string

type csvColumn struct{ name, label string }

// csvColumns are the column of each text, and the label that it becomes, "" for none.
var csvColumns = [numCSVTexts]csvColumn{
	csvGPU:       {"gpu_id", "gpu"},
	csvUUID:      {"uuid", "UUID"},
	csvHostname:  {"hostname", "Hostname"},
	csvInstance:  {"mig_instance", "GPU_I_ID"},
	csvProfile:   {"mig_profile", "GPU_I_PROFILE"},
	csvModel:     {"model", ""},
	csvModelName: {"model_name", "modelName"},
	csvDevice:    {"device", "device"},
	csvPCIBusID:  {"pci_bus_id", "pci_bus_id"},
	csvDriver:    {"driver_version", "DCGM_FI_DRIVER_VERSION"},
	csvStatus:    {"status", ""},
	csvTimestamp: {"timestamp", ""},
}

package fake

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// metric is one line of profile -l.
type metric struct {
	group string
	id    int
	tag   string
}

// together are the groups of a GPU that counts all at once, from Hopper on, in the
// order of DCGM 4.6, without those that no test needs.
var together = []metric{
	{"A.0", 1001, "gr_engine_active"}, {"A.0", 1002, "sm_active"}, {"A.0", 1003, "sm_occupancy"},
	{"A.0", 1004, "tensor_active"}, {"A.0", 1005, "dram_active"}, {"A.0", 1006, "fp64_active"},
	{"A.0", 1007, "fp32_active"}, {"A.0", 1008, "fp16_active"}, {"A.0", 1009, "pcie_tx_bytes"},
	{"A.0", 1010, "pcie_rx_bytes"}, {"A.0", 1011, "nvlink_tx_bytes"}, {"A.0", 1012, "nvlink_rx_bytes"},
	{"A.0", 1013, "tensor_imma_active"}, {"A.0", 1014, "tensor_hmma_active"},
	{"A.0", 1015, "tensor_dfma_active"}, {"A.0", 1016, "integer_active"},
	{"B.0", 1040, "nvlink_l0_tx_bytes"},
}

// inTurns are the groups of an A100, as printed by EAR, a public program.
var inTurns = []metric{
	{"A.1", 1002, "sm_active"}, {"A.1", 1003, "sm_occupancy"}, {"A.1", 1004, "tensor_active"}, {"A.1", 1006, "fp64_active"},
	{"A.2", 1008, "fp16_active"}, {"A.2", 1013, "tensor_imma_active"}, {"A.2", 1014, "tensor_hmma_active"},
	{"A.3", 1007, "fp32_active"}, {"B.0", 1005, "dram_active"}, {"C.0", 1009, "pcie_tx_bytes"}, {"C.0", 1010, "pcie_rx_bytes"},
	{"D.0", 1001, "gr_engine_active"}, {"E.0", 1011, "nvlink_tx_bytes"}, {"E.0", 1012, "nvlink_rx_bytes"},
}

// profile prints the profiling fields of one board.
func (f *fake) profile(set map[string]string) status {
	if result := f.connect("profile", set); result != ok {
		return result
	}
	board, _ := strconv.Atoi(set["-i"])
	metrics := inTurns
	for _, gpu := range f.scenario.GPUs {
		if gpu.Index == board && strings.Contains(gpu.Name, "H100") {
			metrics = together
		}
	}
	if refused, is := f.failure(dcgmtest.ListRefused, "profile", false); is && refused.Command == "profile" {
		f.out.printf("Error: Unable to Get supported metric groups: %s.\n", status(refused.Code))
		return status(refused.Code)
	}
	rule := "+----------------+----------+------------------------------------------------------+\n"
	f.out.printf("%s| Group.Subgroup | Field ID | Field Tag                                            |\n%s", rule, rule)
	for _, m := range metrics {
		f.out.printf("| %-14s | %-8s | %-52s |\n", m.group, fmt.Sprint(m.id), m.tag)
	}
	f.out.printf("%s", rule)
	return ok
}

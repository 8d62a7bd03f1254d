package canonical

import "slices"

// Condition is one thing that can be wrong with a board.
type Condition uint8

// The conditions, in the order of the table.
const (
	CondRowRemapFailure Condition = iota
	CondUncorrectableRemappedRows
	CondPCIeReplay
	CondPCIeDegraded
	CondGPUTemperature
	CondMemoryTemperature
	CondRecoveryAction
	CondXIDFatal
	CondXIDRecent
	CondXIDRepeated
	CondECCDoubleBit
	CondRowRemapPending
	CondRetiredPagesPending
	CondMemoryWorn
	CondThermalSlowdown
	CondPowerBrake
	CondNVLinkErrors
	CondNVLinkFlapping
	CondNVLinkDown
	CondFabric
	CondNVSwitch
	CondProfilingStalled
	NumConditions
)

// ConditionInfo is a row of the table of health conditions. Pages, the terminal UI, the mixin
// and the example of the config file read it; compute has the test of each condition.
type ConditionInfo struct {
	// Name is the value of the label, and the key of the config file.
	Name string
	// Title is the name on a screen.
	Title string
	// States are the default states: one, or two between which the reading decides.
	States HealthSet
	// Action is what the condition asks for, and Milder what it asks for in the milder of two
	// states, if that differs. The code of an XID, or the driver, decides where it is ActionNone.
	Action, Milder Action
	// Basic conditions decide whether a board without a raised condition is ok: if none of them was
	// read, its health is unknown.
	Basic bool
	// Field is the reading that is shown with the condition, NumFields for none. Valued conditions
	// are shown with its value, such as an XID's code.
	Field  Field
	Valued bool
	// When says when the condition is raised, and Remedy what it means, what to do, and what to measure.
	When, Remedy string
}

// Conditions is indexed by Condition. The basic ones are KempnerPulse's. Rows with uncorrectable
// errors are remapped, which repairs them: only the threshold says that there are too many. A
// reset remaps pending rows, loading the driver retires pending pages, and a board with stalled
// profiling still works.
var Conditions = [NumConditions]ConditionInfo{
	CondRowRemapFailure: {
		Name: "row_remap_failure", Title: "row remap failed", States: RaisesCrit, Action: ActionReplace, Basic: true, Field: RowRemapFailure,
		When: "a memory row could not be remapped",
		Remedy: "A broken memory row could not be replaced. Drain the node and have the board replaced. " +
			"Measure kpulse_gpu_remapped_rows_total: how many rows were replaced before.",
	},
	CondUncorrectableRemappedRows: {
		Name: "uncorrectable_remapped_rows", Title: "uncorrectable rows remapped", States: RaisesCrit | RaisesWarn,
		Action: ActionReplace, Milder: ActionCheckHardware, Basic: true, Field: RemappedRowsUncorrectable, Valued: true,
		When: "warn: for 24 h after rows were remapped for uncorrectable errors; crit: 512 rows are (DCGM's limit). A row that was repaired is no fault. " +
			"Set to crit alone, any such row is (KempnerPulse)",
		Remedy: "The board repaired rows with uncorrectable errors. Run the vendor's field diagnostics, and replace the board if there are more. " +
			"Measure kpulse_gpu_remapped_rows_total: it must not rise again.",
	},
	CondPCIeReplay: {
		Name: "pcie_replay", Title: "PCIe replays", States: RaisesWarn, Action: ActionCheckHardware, Basic: true, Field: PCIeReplays,
		When: "for 10 min after more than 8 replays within a minute (DCGM's limit): single ones are normal",
		Remedy: "The PCIe link repeated packets. If it continues, reseat the board or riser, and check the slot's signal. " +
			"Measure kpulse_gpu_pcie_replays_total under load.",
	},
	CondPCIeDegraded: {
		Name: "pcie_degraded", Title: "PCIe lanes missing", States: RaisesWarn, Action: ActionCheckHardware, Field: PCIeLinkWidth, Valued: true,
		When: "the link had fewer lanes than board and slot allow for 10 min, whenever the GPU was busy",
		Remedy: "Transfers to the host take longer than they should. Reseat the board or riser; check the slot's bifurcation in the firmware. " +
			"Measure kpulse_gpu_pcie_link_width, and a copy from the host to the GPU.",
	},
	CondGPUTemperature: {
		Name: "gpu_temperature", Title: "GPU hot", States: RaisesHot, Action: ActionCheckHardware, Basic: true, Field: Temperature, Valued: true,
		When: "at the model's warning temperature (A100 93 °C, H100 and H200 95 °C, RTX 6000 92 °C, others 93 °C), or if the driver reports no margin " +
			"left to the slowdown",
		Remedy: "Too hot for this model. Look at fans, air flow and the inlet temperature. " +
			"Measure kpulse_gpu_temperature_celsius beside that of its neighbours.",
	},
	CondMemoryTemperature: {
		Name: "memory_temperature", Title: "memory hot", States: RaisesHot, Action: ActionCheckHardware, Basic: true, Field: MemoryTemperature, Valued: true,
		When: "at the same warning temperature",
		Remedy: "The memory is too hot. Look at fans, air flow and the inlet temperature. " +
			"Measure kpulse_gpu_memory_temperature_celsius beside that of its neighbours.",
	},
	CondRecoveryAction: {
		Name: "recovery_action", Title: "driver asks for recovery", States: RaisesCrit | RaisesWarn, Field: RecoveryAction, Valued: true,
		When: "the driver asks for an action: crit for a GPU reset (1), a reboot (2), drain and reset (4), warn for others",
		Remedy: "The driver itself asks for it: 1 and 4 reset the GPU, 2 reboot the node, 3 end what uses peer-to-peer, 5 recover the IMEX domain. Drain " +
			"the node first. " +
			"Measure with kpulse-proxy check health: the condition clears when the driver asks for nothing more.",
	},
	CondXIDFatal: {
		Name: "xid_fatal", Title: "fatal XID", States: RaisesCrit, Field: XIDLast, Valued: true,
		When: "from an XID that the table of XIDs calls fatal (such as 48, 79, 95, 119) until it is resolved (below), whatever codes follow it",
		Remedy: "The driver reported an error after which the GPU is unusable, and nothing has shown since that it is resolved. Drain the node, and do what " +
			"kpulse-proxy explain xid says about the code: most need a reset, some a reboot. " +
			"Measure with the vendor's diagnostics before the node gets jobs again.",
	},
	CondXIDRecent: {
		Name: "xid_recent", Title: "recent XID", States: RaisesWarn, Field: XIDLast, Valued: true,
		When: "for 10 min after an XID that the table calls a warning, or that is not in it",
		Remedy: "The driver reported an error within the last ten minutes that the GPU survived: kpulse-proxy explain xid says what it is. " +
			"Measure kpulse_gpu_xid_errors_total: it rises if the error comes again.",
	},
	CondXIDRepeated: {
		Name: "xid_repeated", Title: "repeated XID", States: RaisesWarn, Action: ActionCheckHardware, Field: XIDLast, Valued: true,
		When: "an XID that is a program's fault, such as 13 or 31, came five times within a day on this board, and not on the others of its node",
		Remedy: "Programs fail on this GPU again and again with the same error, and not on its neighbours: run the vendor's field diagnostics before the next job. " +
			"Measure by running one of the failed jobs on another GPU.",
	},
	CondECCDoubleBit: {
		Name: "ecc_double_bit", Title: "double-bit ECC", States: RaisesCrit, Action: ActionResetGPU, Field: ECCDoubleBitVolatile,
		When: "for 10 min after the count of double-bit errors rose",
		Remedy: "Memory errors that could not be corrected. Jobs on this GPU may have failed; reset it to remap the rows. " +
			"Measure kpulse_gpu_ecc_errors_total, and after the reset kpulse_gpu_remapped_rows_total.",
	},
	CondRowRemapPending: {
		Name: "row_remap_pending", Title: "row remap pending", States: RaisesWarn, Action: ActionResetGPU, Field: RowRemapPending,
		When: "a remapped row waits for a reset",
		Remedy: "A memory row is to be replaced at the next reset. Reset the GPU when it is free. " +
			"Measure kpulse_gpu_row_remap_pending after the reset: it must not be 1.",
	},
	CondRetiredPagesPending: {
		Name: "retired_pages_pending", Title: "page retirement pending", States: RaisesWarn, Action: ActionRebootNode, Field: RetiredPagesPending,
		When: "a page is to be retired when the driver is next loaded",
		Remedy: "A memory page is retired only after the driver is reloaded. Reboot the node, or reload the driver, when it is free. " +
			"Measure kpulse_gpu_ecc_errors_total: it must not rise further.",
	},
	CondMemoryWorn: {
		Name: "memory_worn", Title: "memory worn out", States: RaisesCrit | RaisesWarn, Action: ActionReplace, Milder: ActionCheckHardware, Field: NumFields,
		When: "crit: the SRAM has more errors than NVIDIA allows, or memory is unrepairable; warn: banks have no spare rows left",
		Remedy: "Memory that cannot be repaired, or too many errors in the SRAM: have the board replaced. If only the spare rows of a bank are used up, plan for it. " +
			"Measure kpulse_gpu_memory_banks and kpulse_gpu_ecc_errors_total.",
	},
	CondThermalSlowdown: {
		Name: "thermal_slowdown", Title: "thermal slowdown", States: RaisesHot, Action: ActionCheckHardware, Field: Temperature,
		When: "three readings in a row show clocks held down by heat",
		Remedy: "The GPU lowers its clocks because it is hot. Look at fans, air flow and the inlet temperature. " +
			"Measure kpulse_gpu_throttled_seconds_total and kpulse_gpu_temperature_celsius.",
	},
	CondPowerBrake: {
		Name: "power_brake", Title: "power brake", States: RaisesWarn, Action: ActionCheckHardware, Field: Power,
		When: "three readings in a row show clocks held down by the power brake",
		Remedy: "The power supply signals the GPU to draw less. Check PSUs, cabling and the rack's power. " +
			"Measure kpulse_gpu_power_watts of all GPUs of the node, and the power of the rack.",
	},
	CondNVLinkErrors: {
		Name: "nvlink_errors", Title: "NVLink errors", States: RaisesWarn, Action: ActionCheckHardware, Field: NVLinkBytes,
		When: "more than 10 CRC errors, replays or, on NVLink 5, errors within 10 min; discards and recoveries do not count",
		Remedy: "NVLink had errors. If they continue, look at the bridge or baseboard, and at the fabric manager's log. " +
			"Measure kpulse_gpu_nvlink_errors_total by kind during an all-reduce.",
	},
	CondNVLinkFlapping: {
		Name: "nvlink_flapping", Title: "NVLink flapping", States: RaisesWarn, Action: ActionCheckHardware, Field: NVLinkBytes,
		When: "5 recoveries of links that succeeded within 24 h",
		Remedy: "Links of this GPU fail and recover, which precedes failures that do not recover. Inspect cables, cages and switches before that. " +
			"Measure kpulse_gpu_nvlink_errors_total by kind, on both ends of the links.",
	},
	CondNVLinkDown: {
		Name: "nvlink_down", Title: "NVLink down", States: RaisesCrit | RaisesWarn, Action: ActionResetGPU, Milder: ActionCheckHardware, Field: NVLinksActive,
		When: "crit: for 10 min after the count of recoveries that failed rose; or three readings in a row show fewer links up than this GPU had before " +
			"in three readings in a row; or fewer than all others of its model on its node (at least three, which agree), if it has a fabric or is built for " +
			"baseboards only, else warn. Not for 10 min after the GPU restarts (its energy resets, or it was away or not read for over 3 min), nor while it " +
			"is cut into MIG instances",
		Remedy: "An NVLink of this GPU is down. Drain the node, look at the fabric manager's log, and reset the GPU; reseat or replace the board if the " +
			"link stays down. " +
			"Measure kpulse_gpu_nvlink_links_active, and an all-reduce after the repair.",
	},
	CondFabric: {
		Name: "fabric", Title: "fabric not healthy", States: RaisesCrit | RaisesWarn, Action: ActionCheckHardware, Field: FabricHealth,
		When: "three readings in a row: crit if the fabric is unhealthy, has unhealthy routes or access timeouts, or its manager failed or could not set " +
			"up the GPU; warn if its capacity or bandwidth is limited, or a route recovers. A manager that has not started or is not done for 5 min: crit if " +
			"it was done before, or is for another GPU of the node, else warn",
		Remedy: "The NVLink fabric has a problem with this GPU. Check the fabric manager, on racks also IMEX and the switches; drain the node if the " +
			"problem persists. " +
			"Measure kpulse_gpu_fabric_health and kpulse_gpu_nvlink_links_active, on its neighbours too.",
	},
	CondNVSwitch: {
		Name: "nvswitch", Title: "NVSwitch failed", States: RaisesCrit, Action: ActionRebootNode, Field: NumFields,
		When: "a fatal SXID of an NVSwitch of the node, from the kernel's log, until a reboot or an operator's word (`/-/resolve?switch=PCI`)",
		Remedy: "A switch of this node's NVLink fabric reported a fatal error. Drain the node and reboot it; kernel log and fabric manager's log name the link. " +
			"Measure an all-reduce over all GPUs of the node before it gets jobs again.",
	},
	CondProfilingStalled: {
		Name: "profiling_stalled", Title: "profiling stalled", States: RaisesWarn, Field: NumFields,
		When: "three readings in a row, over at least 10 s, show every activity at 0 while the GPU is busy: its utilization is then absent and its class " +
			"`unknown` from the first of them",
		Remedy: "The profiling counters read 0 while the GPU is busy: often another profiler uses them. Stop it, or restart the host engine. " +
			"Measure kpulse_gpu_sm_active_ratio beside kpulse_gpu_nvml_utilization_ratio: both rise with work.",
	},
}

// String returns the condition's name.
func (c Condition) String() string { return Conditions[c].Name }

// ConditionOf returns the condition with a name, and whether there is one.
func ConditionOf(name string) (Condition, bool) {
	i := slices.IndexFunc(Conditions[:], func(c ConditionInfo) bool { return c.Name == name })
	return Condition(max(i, 0)), i >= 0
}

// DefaultStates returns the states that each condition can raise.
func DefaultStates() (states [NumConditions]HealthSet) {
	for i := range Conditions {
		states[i] = Conditions[i].States
	}
	return states
}

// ActionIn returns what the condition asks for when it is raised in a state.
func (c Condition) ActionIn(state Health) Action {
	info := &Conditions[c]
	if info.Milder != ActionNone && state < info.States.Worst() {
		return info.Milder
	}
	return info.Action
}

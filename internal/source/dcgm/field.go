package dcgm

import "slices"

// Stream is the part of DCGM that reads a field, and so the one of dmon's two streams that the field goes through.
type Stream uint8

// The streams.
const (
	// DeviceStream fields are read through NVML.
	DeviceStream Stream = iota
	// ProfilingStream fields are counted by hardware that another program may hold.
	ProfilingStream
)

// Field is one field of DCGM.
type Field struct {
	ID     int    // DCGM's number (dcgm_fields.h), the same in all versions that have the field; 0 is none: see Foreign
	Column string // dmon's heading of the values
	// Family, Type and Float are what dcgm-exporter 4.8 makes of the field: the name and the TYPE word in its counters
	// files, and whether its values have six decimals (DCGM's doubles) or none (its integers). Not all TYPE words are
	// right: NVLINK_BANDWIDTH_TOTAL is a rate, whatever its TYPE. RETIRED_PENDING is not the exporter's counter, but a
	// gauge: it is a flag that falls.
	Family string
	Type   string
	Float  bool
	Stream Stream
	// Rate fields are averages since the previous sample, so the first sample of a stream has no value.
	Rate bool
	// Multiplexed fields take turns with others on GPUs before Hopper: there, each value covers a part of the period.
	Multiplexed bool
	// Unprintable fields are not requested from dmon: they are too small for its three decimals, or share their column
	// with another. A field without a column of its own has its Family as Column.
	Unprintable bool
	// Recent fields are not in DCGM 4.0: a host engine without one refuses the whole request that has it.
	Recent bool
	// Help is one line in plain words, with the unit of the values as dmon and the exporter write them.
	Help string
}

// The Column and the Family of readings that DCGM lacks, named so that they do not look like DCGM's.
const (
	NVLinkLimit   = "nvlink_limit_bytes_per_second" // what all active NVLinks of a GPU can carry, both ways together
	NVLinksActive = "nvlink_links_active"           // the NVLinks of a GPU that are up; DCGM has a field for each link
	Lost          = "gpu_lost"                      // 1 for a board that a source names and cannot read, and nothing else
)

// silentLabel is a label of Lost if the board has no reading, but nobody says that it is lost.
const silentLabel = `,silent="true"`

// CliqueFamily is the Family of the clique of a board. A Device's Cluster, which is not a number, is a label of this
// family only: names of clusters come and go with the fabric manager, and would start new series of every family.
const CliqueFamily = "DCGM_FI_DEV_FABRIC_CLIQUE_ID"

// clusterLabel is the exporter's label of the cluster, if its counters file makes it one.
const clusterLabel = ",DCGM_FI_DEV_FABRIC_CLUSTER_UUID"

// The indices in Fields of NVLinkLimit and Lost.
const (
	linkLimitField = len(Fields) - 2
	lostField      = len(Fields) - 1
)

// CliqueColumn is dmon's column of CliqueFamily, whose label blocks have the cluster.
const CliqueColumn = "FMCID"

// cliqueField is the index in Fields of CliqueFamily.
var cliqueField = FieldOf([]byte(CliqueColumn))

// FieldOf returns the index in Fields of a column of dmon, -1 if there is none.
func FieldOf(column []byte) int {
	return slices.IndexFunc(Fields[:], func(f Field) bool { return f.Column == string(column) })
}

// Foreign reports whether DCGM lacks the field: dmon cannot be asked for it, and no exporter serves it, so it is
// recorded but not passed on. Its Column is the name of the family, not a heading.
func (f *Field) Foreign() bool { return f.ID == 0 }

// InDmon reports whether dmon can be asked for the field.
func (f *Field) InDmon() bool { return !f.Foreign() && !f.Unprintable }

// The TYPE words of the text exposition format.
const (
	gauge   = "gauge"
	counter = "counter"
)

// Fields lists all fields that we read: first those of dcgm-exporter's default counters, in the order of its file,
// then other fields of DCGM, and last those that DCGM lacks. Ids, columns and types are the same in DCGM 3.3 to 4.6.
// The licence status of vGPUs, which is in the exporter's file too, is left out: its heading in dmon is not known.
var Fields = [...]Field{
	{ID: 100, Column: "SMCLK", Family: "DCGM_FI_DEV_SM_CLOCK", Type: gauge, Help: "Clock of the streaming multiprocessors, in MHz."},
	{ID: 101, Column: "MMCLK", Family: "DCGM_FI_DEV_MEM_CLOCK", Type: gauge, Help: "Clock of the device memory, in MHz."},
	{ID: 140, Column: "MMTMP", Family: "DCGM_FI_DEV_MEMORY_TEMP", Type: gauge, Help: "Temperature of the device memory, in degrees Celsius."},
	{ID: 150, Column: "TMPTR", Family: "DCGM_FI_DEV_GPU_TEMP", Type: gauge, Help: "Temperature of the GPU, in degrees Celsius."},
	{ID: 155, Column: "POWER", Family: "DCGM_FI_DEV_POWER_USAGE", Type: gauge, Float: true, Help: "Power the board draws, in watts."},
	{ID: 156, Column: "TOTEC", Family: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Type: counter, Help: "Energy the board used since the driver was loaded, in millijoules."},
	{ID: 202, Column: "RPCTR", Family: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Type: counter, Help: "Retries on the PCIe link since the driver was loaded."},
	{ID: 203, Column: "GPUTL", Family: "DCGM_FI_DEV_GPU_UTIL", Type: gauge, Help: "Percentage of time some kernel ran, however small."},
	{ID: 204, Column: "MCUTL", Family: "DCGM_FI_DEV_MEM_COPY_UTIL", Type: gauge, Help: "Percentage of time device memory was read or written."},
	{ID: 206, Column: "ECUTL", Family: "DCGM_FI_DEV_ENC_UTIL", Type: gauge, Help: "Percentage of time the video encoder worked."},
	{ID: 207, Column: "DCUTL", Family: "DCGM_FI_DEV_DEC_UTIL", Type: gauge, Help: "Percentage of time the video decoder worked."},
	{ID: 230, Column: "XIDER", Family: "DCGM_FI_DEV_XID_ERRORS", Type: gauge, Help: "Code of the latest XID error; a code, not a count."},
	{ID: 251, Column: "FBFRE", Family: "DCGM_FI_DEV_FB_FREE", Type: gauge, Help: "Device memory not in use, in MiB."},
	{ID: 252, Column: "FBUSD", Family: "DCGM_FI_DEV_FB_USED", Type: gauge, Help: "Device memory in use, in MiB."},
	{ID: 253, Column: "FBRSV", Family: "DCGM_FI_DEV_FB_RESERVED", Type: gauge, Help: "Device memory the driver and the firmware keep, in MiB."},
	{ID: 393, Column: "URMPS", Family: "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Type: counter, Help: "Memory rows replaced after uncorrectable errors, over the life of the board."},
	{ID: 394, Column: "CRMPS", Family: "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Type: counter, Help: "Memory rows replaced after correctable errors, over the life of the board."},
	{ID: 395, Column: "RRF", Family: "DCGM_FI_DEV_ROW_REMAP_FAILURE", Type: gauge, Help: "1 if a memory row could not be replaced."},
	{ID: 449, Column: "NBWLT", Family: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", Type: counter, Rate: true, Help: "Data sent and received over all NVLinks, in MB/s of 1000 KiB: a rate that falls as well."},
	{ID: 1001, Column: "GRACT", Family: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Share of time, 0 to 1, any part of the graphics or compute engine was active."},
	{ID: 1004, Column: "TENSO", Family: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Share of cycles, 0 to 1, the tensor cores were active."},
	{ID: 1005, Column: "DRAMA", Family: "DCGM_FI_PROF_DRAM_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Share of cycles, 0 to 1, the memory interface moved data."},
	{ID: 1009, Column: "PCITX", Family: "DCGM_FI_PROF_PCIE_TX_BYTES", Type: gauge, Stream: ProfilingStream, Rate: true, Help: "Bytes per second the GPU sent over PCIe, headers included."},
	{ID: 1010, Column: "PCIRX", Family: "DCGM_FI_PROF_PCIE_RX_BYTES", Type: gauge, Stream: ProfilingStream, Rate: true, Help: "Bytes per second the GPU received over PCIe, headers included."},

	{ID: 1002, Column: "SMACT", Family: "DCGM_FI_PROF_SM_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Share of time, 0 to 1, a streaming multiprocessor had work, averaged over all of them."},
	{ID: 1003, Column: "SMOCC", Family: "DCGM_FI_PROF_SM_OCCUPANCY", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Resident warps as a share, 0 to 1, of the most there can be."},
	{ID: 1006, Column: "FP64A", Family: "DCGM_FI_PROF_PIPE_FP64_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Help: "Share of cycles, 0 to 1, the 64-bit float pipes were active."},
	{ID: 1007, Column: "FP32A", Family: "DCGM_FI_PROF_PIPE_FP32_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the 32-bit float pipes were active."},
	{ID: 1008, Column: "FP16A", Family: "DCGM_FI_PROF_PIPE_FP16_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the 16-bit float pipes were active."},
	{ID: 1011, Column: "NVLTX", Family: "DCGM_FI_PROF_NVLINK_TX_BYTES", Type: gauge, Stream: ProfilingStream, Rate: true, Help: "Bytes per second the GPU sent over NVLink."},
	{ID: 1012, Column: "NVLRX", Family: "DCGM_FI_PROF_NVLINK_RX_BYTES", Type: gauge, Stream: ProfilingStream, Rate: true, Help: "Bytes per second the GPU received over NVLink."},
	{ID: 1013, Column: "TIMMA", Family: "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the tensor cores worked on integers."},
	{ID: 1014, Column: "THMMA", Family: "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the tensor cores worked on 16-bit floats."},
	{ID: 1015, Column: "TDFMA", Family: "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the tensor cores worked on 64-bit floats."},
	{ID: 1016, Column: "INTAC", Family: "DCGM_FI_PROF_PIPE_INT_ACTIVE", Type: gauge, Float: true, Stream: ProfilingStream, Rate: true, Multiplexed: true, Help: "Share of cycles, 0 to 1, the integer pipes were active."},

	{ID: 112, Column: "DVCCTR", Family: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Type: gauge, Help: "Bits of the reasons for which the clocks are held down."},
	{ID: 158, Column: "SDTMP", Family: "DCGM_FI_DEV_SLOWDOWN_TEMP", Type: gauge, Help: "Temperature from which the GPU slows itself down, in degrees Celsius."},
	{ID: 160, Column: "PMLMT", Family: "DCGM_FI_DEV_POWER_MGMT_LIMIT", Type: gauge, Float: true, Help: "Requested power limit, in watts."},
	{ID: 163, Column: "PMDEF", Family: "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", Type: gauge, Float: true, Help: "Power limit that the board has from the factory, in watts."},
	{ID: 164, Column: "EPLMT", Family: "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Type: gauge, Float: true, Help: "Power limit in force, in watts."},
	{ID: 235, Column: "PCIMG", Family: "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", Type: gauge, Help: "Latest generation the PCIe link can run at."},
	{ID: 236, Column: "PCIMW", Family: "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", Type: gauge, Help: "Most lanes the PCIe link can run on."},
	{ID: 237, Column: "PCILG", Family: "DCGM_FI_DEV_PCIE_LINK_GEN", Type: gauge, Help: "Generation the PCIe link runs at."},
	{ID: 238, Column: "PCILW", Family: "DCGM_FI_DEV_PCIE_LINK_WIDTH", Type: gauge, Help: "Lanes the PCIe link runs on."},
	{ID: 240, Column: "PVIOL", Family: "DCGM_FI_DEV_POWER_VIOLATION", Type: counter, Help: "Time the clocks were held down because of power, in ns."},
	{ID: 241, Column: "TVIOL", Family: "DCGM_FI_DEV_THERMAL_VIOLATION", Type: counter, Help: "Time the clocks were held down by heat, in ns."},
	{ID: 242, Column: "SBVIO", Family: "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", Type: counter, Help: "Time the clocks were held down by the GPUs they are in step with, in ns."},
	{ID: 243, Column: "BLVIO", Family: "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", Type: counter, Help: "Time the clocks were held down by a limit of the board, in ns."},
	{ID: 244, Column: "LUVIO", Family: "DCGM_FI_DEV_LOW_UTIL_VIOLATION", Type: counter, Help: "Time the clocks were held down because of low utilization, in ns."},
	{ID: 245, Column: "RVIOL", Family: "DCGM_FI_DEV_RELIABILITY_VIOLATION", Type: counter, Help: "Time the clocks were held down to keep the board reliable, in ns."},
	{ID: 246, Column: "TAPCV", Family: "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", Type: counter, Help: "Time the clocks were below those set for applications, in ns."},
	{ID: 247, Column: "TAPBC", Family: "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", Type: counter, Help: "Time the clocks were below their base, in ns."},
	{ID: 250, Column: "FBTTL", Family: "DCGM_FI_DEV_FB_TOTAL", Type: gauge, Help: "Total device memory, in MiB."},
	{ID: 310, Column: "ESVTL", Family: "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Type: counter, Help: "Single-bit ECC errors since the driver was loaded."},
	{ID: 311, Column: "EDVTL", Family: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Type: counter, Help: "Double-bit ECC errors since the driver was loaded."},
	{ID: 312, Column: "ESATL", Family: "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", Type: counter, Help: "Single-bit ECC errors over the life of the board."},
	{ID: 313, Column: "EDATL", Family: "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", Type: counter, Help: "Double-bit ECC errors over the life of the board."},
	{ID: 390, Column: "RPSBE", Family: "DCGM_FI_DEV_RETIRED_SBE", Type: counter, Help: "Memory pages retired for single-bit errors, over the life of the board."},
	{ID: 391, Column: "RPDBE", Family: "DCGM_FI_DEV_RETIRED_DBE", Type: counter, Help: "Memory pages retired for double-bit errors, over the life of the board."},
	{ID: 392, Column: "RPPEN", Family: "DCGM_FI_DEV_RETIRED_PENDING", Type: gauge, Help: "1 if a memory page is retired only after the driver is reloaded."},
	{ID: 396, Column: "RRP", Family: "DCGM_FI_DEV_ROW_REMAP_PENDING", Type: gauge, Help: "1 if a replaced memory row takes effect at the next reset only."},
	{ID: 409, Column: "NFELT", Family: "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", Type: counter, Help: "CRC errors in the flow control of all NVLinks."},
	{ID: 419, Column: "NDELT", Family: "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", Type: counter, Help: "CRC errors in the data of all NVLinks."},
	{ID: 429, Column: "NRELT", Family: "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", Type: counter, Help: "Retries on all NVLinks."},
	{ID: 439, Column: "NRCLT", Family: "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", Type: counter, Help: "Errors that all NVLinks had to recover from."},
	{ID: 1523, Column: "GPURECOV", Family: "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", Type: gauge, Recent: true, Help: "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain peer-to-peer, 4 drain and reset."},

	// Fields of which DCGM 3.3 has only a part.
	{ID: 153, Column: "GTLIMIT", Family: "DCGM_FI_DEV_GPU_TEMP_LIMIT", Type: gauge, Recent: true, Help: "Degrees Celsius left until the GPU slows itself down."},
	{ID: 170, Column: "FMSTA", Family: "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", Type: gauge, Recent: true, Help: "Whether the fabric manager has set up the GPU: 0 no fabric, 1 not started, 2 in progress, 3 done, 4 failed."},
	{ID: 171, Column: "FMFRC", Family: "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", Type: gauge, Recent: true, Help: "The driver's error code if the fabric manager could not set up the GPU, else 0."},
	{ID: 173, Column: CliqueColumn, Family: CliqueFamily, Type: gauge, Recent: true, Help: "Clique of the GPU: the part of its NVLink fabric within which GPUs reach each other."},
	{ID: 174, Column: "FMHMSK", Family: "DCGM_FI_DEV_FABRIC_HEALTH_MASK", Type: gauge, Recent: true, Help: "Problems of the fabric, two bits each, 1 yes, 2 no: degraded bandwidth, route recovery, bad route, access timeout."},
	{ID: 175, Column: "FMHSUM", Family: "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", Type: gauge, Recent: true, Help: "Health of the GPU in the fabric: 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity."},
	{ID: 285, Column: "C2CLC", Family: "DCGM_FI_DEV_C2C_LINK_COUNT", Type: gauge, Help: "Chip-to-chip links to the CPU."},
	{ID: 346, Column: "ECCTHRSRM", Family: "DCGM_FI_DEV_THRESHOLD_SRM", Type: gauge, Recent: true, Help: "1 if the uncorrectable errors in the SRAM exceed what NVIDIA allows."},
	{ID: 385, Column: "RRAM", Family: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", Type: gauge, Help: "Memory banks that have all spare rows left."},
	{ID: 386, Column: "RRAH", Family: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", Type: gauge, Help: "Memory banks that have most spare rows left."},
	{ID: 387, Column: "RRAP", Family: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", Type: gauge, Help: "Memory banks that have some spare rows left."},
	{ID: 388, Column: "RRAL", Family: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", Type: gauge, Help: "Memory banks that have few spare rows left."},
	{ID: 389, Column: "RRAN", Family: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", Type: gauge, Help: "Memory banks that have no spare row left."},
	{ID: 1204, Column: "NLMALP", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", Type: counter, Recent: true, Help: "Malformed packets received over all NVLinks, on NVLink 5."},
	{ID: 1205, Column: "NLBUFO", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", Type: counter, Recent: true, Help: "Packets received over all NVLinks and dropped because no buffer was free, on NVLink 5."},
	{ID: 1206, Column: "NLRCVE", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", Type: counter, Recent: true, Help: "Packets received over all NVLinks with errors, on NVLink 5."},
	{ID: 1207, Column: "NLRCVRE", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS", Type: counter, Recent: true, Help: "Packets received over all NVLinks that the sender marked as bad, on NVLink 5."},
	{ID: 1208, Column: "NLRCVGE", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS", Type: counter, Recent: true, Help: "Packets received over all NVLinks whose header does not match, on NVLink 5."},
	{ID: 1209, Column: "NLLLIE", Family: "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", Type: counter, Recent: true, Help: "Times that the errors of an NVLink went over its threshold, on NVLink 5."},
	{ID: 1210, Column: "NLXMITD", Family: "DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS", Type: counter, Recent: true, Help: "Packets that all NVLinks discarded instead of sending, on NVLink 5."},
	{ID: 1211, Column: "NLLRS", Family: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", Type: counter, Recent: true, Help: "Recoveries of NVLinks that succeeded, on NVLink 5."},
	{ID: 1212, Column: "NLLRF", Family: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", Type: counter, Recent: true, Help: "Recoveries of NVLinks that failed, so that the link is down, on NVLink 5."},
	{ID: 1213, Column: "NLLR", Family: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", Type: counter, Recent: true, Help: "Recoveries of NVLinks, on NVLink 5."},
	{ID: 1214, Column: "NLSYME", Family: "DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", Type: counter, Recent: true, Help: "Symbols received over all NVLinks with errors, on NVLink 5."},
	{ID: 1216, Column: "NLSYMBF", Family: "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", Type: gauge, Float: true, Unprintable: true, Help: "Share of bits received wrong over all NVLinks, before error correction, on NVLink 5."},
	{ID: 1218, Column: "NLEFBF", Family: "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", Type: gauge, Float: true, Unprintable: true, Help: "Share of bits received wrong over all NVLinks, after error correction, on NVLink 5."},
	{ID: 1219, Column: "NLEFE", Family: "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", Type: counter, Recent: true, Help: "Errors of all NVLinks that their error correction left, on NVLink 5."},
	{ID: 1400, Column: "C2CLNKINT", Family: "DCGM_FI_DEV_C2C_LINK_ERROR_INTR", Type: counter, Recent: true, Help: "Errors of the chip-to-chip link to the CPU that raised an interrupt."},
	{ID: 1401, Column: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", Family: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", Type: counter, Unprintable: true, Help: "Retries on the chip-to-chip link to the CPU."},
	{ID: 1402, Column: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", Family: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", Type: counter, Unprintable: true, Help: "Retries on the chip-to-chip link to the CPU, one right after the other."},
	{ID: 1507, Column: "MEMUNR", Family: "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", Type: gauge, Recent: true, Help: "1 if the device memory has an error that cannot be repaired."},

	{Column: NVLinksActive, Family: NVLinksActive, Type: gauge, Help: "NVLinks of the GPU that are up; not a DCGM field."},
	{Column: NVLinkLimit, Family: NVLinkLimit, Type: gauge, Help: "Bytes per second that all active NVLinks can carry, both ways together; not a DCGM field."},
	{Column: Lost, Family: Lost, Type: gauge, Help: "1 for a GPU that the host engine or the driver names and that cannot be read; not a DCGM field."},
}

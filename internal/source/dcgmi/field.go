package dcgmi

import "strings"

// field is a DCGM field that a stream asks for.
type field struct {
	id     int
	column string // the short name by which dmon heads it
}

// deviceFields are read through NVML. Ids and short names are those of DCGM's
// dcgm_fields.h and have been the same since 3.3, but for what is not there in
// every version: dmon refuses an id it does not know, and is then asked without.
var deviceFields = []field{
	{100, "SMCLK"}, {101, "MMCLK"}, {112, "DVCCTR"},
	{140, "MMTMP"}, {150, "TMPTR"}, {158, "SDTMP"},
	{155, "POWER"}, {156, "TOTEC"}, {160, "PMLMT"}, {164, "EPLMT"},
	{202, "RPCTR"}, {203, "GPUTL"}, {204, "MCUTL"}, {206, "ECUTL"}, {207, "DCUTL"},
	{230, "XIDER"},
	{240, "PVIOL"}, {241, "TVIOL"}, {242, "SBVIO"}, {243, "BLVIO"},
	{250, "FBTTL"}, {251, "FBFRE"}, {252, "FBUSD"}, {253, "FBRSV"},
	{310, "ESVTL"}, {311, "EDVTL"}, {312, "ESATL"}, {313, "EDATL"},
	{393, "URMPS"}, {394, "CRMPS"}, {395, "RRF"}, {396, "RRP"},
	{409, "NFELT"}, {419, "NDELT"}, {429, "NRELT"}, {439, "NRCLT"}, {449, "NBWLT"},
	{1523, "GPURECOV"}, // as of DCGM 4.5
}

// profilingFields are read from the hardware's counters. GPUs before Hopper can
// count these, and no further ones of the pipes, in a single pass.
var profilingFields = []field{
	{1001, "GRACT"}, {1002, "SMACT"}, {1003, "SMOCC"}, {1004, "TENSO"}, {1005, "DRAMA"}, {1006, "FP64A"},
	{1009, "PCITX"}, {1010, "PCIRX"}, {1011, "NVLTX"}, {1012, "NVLRX"},
}

// rateColumns begin the short names of device fields that are an average since
// the sample before, and so say nothing in the first.
var rateColumns = []string{"NBWL", "NTXBWL", "NRXBWL", "NVLTX", "NVLRX"}

// isRate tells whether the first sample of a device field is void. Of profiling
// fields all are.
func isRate(column string) bool {
	for _, prefix := range rateColumns {
		if strings.HasPrefix(column, prefix) {
			return true
		}
	}
	return false
}

// ids returns the ids of fields.
func ids(fields []field) []int {
	ids := make([]int, len(fields))
	for i, f := range fields {
		ids[i] = f.id
	}
	return ids
}

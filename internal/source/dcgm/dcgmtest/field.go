package dcgmtest

import "slices"

// Field is a field as dcgmi knows it.
type Field struct {
	ID     int
	Column string // the column's heading
	Unit   string // below the heading, often empty, some with a leading blank
	Width  int    // the column takes 8 more
	Float  bool   // printed with three decimals; otherwise a whole number
	Level  Level
	Model  Model
	// Low and High are the range of a Gauge, Rate or Constant. A Counter starts
	// in [Low, 2·Low] and gains up to High with each sample.
	Low, High float64
	Since     string // the first release that has it; "" means all
}

// Level is the smallest part of a board with a reading of its own.
type Level int

// The levels. A part below the level shows the board's reading, except with
// OfBoardOnly.
const (
	OfBoard     Level = iota
	OfInstance        // instances have their own
	OfBoardOnly       // instances are blank
)

// Model is how a field behaves without a Reading.
type Model int

// The models.
const (
	Gauge       Model = iota
	Rate              // 0 in the first sample
	Counter           // never falls
	Constant          // the same in all samples
	Never             // no sample at all
	Unsupported       // blank
)

// Profiling reports whether the field with this id is one of the profiling module.
func Profiling(id int) bool { return 1001 <= id && id < 1200 }

// FieldByID returns the field with this id, if the release has it. The table
// has only fields whose columns are known for certain, except as deviceFields
// says.
func FieldByID(r Release, id int) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.ID == id })
	if i < 0 || !r.Since(fields[i].Since) {
		return Field{}, false
	}
	return fields[i], true
}

// fields are those of both streams.
var fields = slices.Concat(deviceFields, profilingFields)

// deviceFields are read through NVML. Assumed are the widths of 1507 and 1523, the headings
// and widths of 237 and 238, and the first releases of 153, 171, 173, 175, 346, 1204 to
// 1219 and 1400, which 4.6.0 has and 3.3.9 lacks.
var deviceFields = []Field{
	{ID: 100, Column: "SMCLK", Width: 5, Low: 345, High: 1980},
	{ID: 101, Column: "MMCLK", Width: 5, Low: 2619, High: 2619},
	{ID: 112, Column: "DVCCTR", Width: 20},
	{ID: 140, Column: "MMTMP", Unit: "C", Width: 10, Low: 40, High: 80},
	{ID: 150, Column: "TMPTR", Unit: " C", Width: 5, Low: 30, High: 75},
	{ID: 151, Column: "GMMOT", Unit: " C", Width: 5, Model: Constant, Low: 95, High: 95},
	{ID: 152, Column: "GGMOT", Unit: " C", Width: 5, Model: Constant, Low: 87, High: 87},
	{ID: 153, Column: "GTLIMIT", Unit: " C", Width: 5, Low: 10, High: 55, Since: "4.2.0"},
	{ID: 155, Column: "POWER", Unit: " W", Width: 10, Float: true, Low: 60, High: 700},
	{ID: 156, Column: "TOTEC", Unit: " mJ", Width: 16, Model: Counter, Low: 1e9, High: 70000},
	{ID: 157, Column: "POWINST", Unit: " W", Width: 10, Float: true, Low: 60, High: 700},
	{ID: 158, Column: "SDTMP", Unit: " C", Width: 5, Model: Constant, Low: 89, High: 89},
	{ID: 159, Column: "SHTMP", Unit: " C", Width: 5, Model: Constant, Low: 94, High: 94},
	{ID: 160, Column: "PMLMT", Unit: " W", Width: 10, Float: true, Model: Constant, Low: 700, High: 700},
	{ID: 164, Column: "EPLMT", Unit: " W", Width: 10, Float: true, Model: Constant, Low: 700, High: 700},
	{ID: 171, Column: "FMFRC", Width: 5, Model: Constant, Since: "4.2.0"},
	{ID: 173, Column: "FMCID", Width: 5, Model: Constant, Low: 7, High: 7, Since: "4.2.0"},
	{ID: 175, Column: "FMHSUM", Width: 5, Model: Constant, Low: 1, High: 1, Since: "4.2.0"},
	{ID: 190, Column: "PSTAT", Width: 5, Model: Constant},
	{ID: 191, Column: "FANSP", Width: 5, Model: Unsupported},
	{ID: 202, Column: "RPCTR", Unit: "#", Width: 5, Model: Counter},
	{ID: 203, Column: "GPUTL", Width: 10, High: 101},
	{ID: 204, Column: "MCUTL", Width: 10, High: 101},
	{ID: 206, Column: "ECUTL", Width: 10, High: 101},
	{ID: 207, Column: "DCUTL", Width: 10, High: 101},
	{ID: 230, Column: "XIDER", Width: 5, Model: Never},
	{ID: 235, Column: "PCIMG", Width: 5, Model: Constant, Low: 5, High: 5},
	{ID: 236, Column: "PCIMW", Width: 5, Model: Constant, Low: 16, High: 16},
	{ID: 237, Column: "PCILG", Width: 5, Model: Constant, Low: 5, High: 5},
	{ID: 238, Column: "PCILW", Width: 5, Model: Constant, Low: 16, High: 16},
	{ID: 240, Column: "PVIOL", Width: 10, Model: Counter, High: 1e6},
	{ID: 241, Column: "TVIOL", Width: 10, Model: Counter},
	{ID: 242, Column: "SBVIO", Width: 10, Model: Counter},
	{ID: 243, Column: "BLVIO", Width: 20, Model: Counter},
	{ID: 244, Column: "LUVIO", Width: 20, Model: Counter, High: 1e6},
	{ID: 245, Column: "RVIOL", Width: 20, Model: Counter},
	{ID: 246, Column: "TAPCV", Width: 20, Model: Counter},
	{ID: 247, Column: "TAPBC", Width: 20, Model: Counter},
	{ID: 250, Column: "FBTTL", Width: 10, Level: OfInstance, Model: Constant, Low: 81559, High: 81559},
	{ID: 251, Column: "FBFRE", Width: 10, Level: OfInstance, Low: 0, High: 40000},
	{ID: 252, Column: "FBUSD", Width: 10, Level: OfInstance, Low: 0, High: 40000},
	{ID: 253, Column: "FBRSV", Width: 10, Level: OfInstance, Model: Constant, Low: 551, High: 551},
	{ID: 254, Column: "FBUSP", Width: 10, Float: true, Level: OfInstance, High: 1},
	{ID: 285, Column: "C2CLC", Width: 5, Model: Unsupported},
	{ID: 310, Column: "ESVTL", Width: 5, Model: Counter},
	{ID: 311, Column: "EDVTL", Width: 5, Model: Counter},
	{ID: 312, Column: "ESATL", Width: 5, Model: Counter},
	{ID: 313, Column: "EDATL", Width: 5, Model: Counter},
	{ID: 346, Column: "ECCTHRSRM", Width: 10, Since: "4.2.0"},
	{ID: 385, Column: "RRAM", Width: 10, Model: Constant, Low: 640, High: 640, Since: "3.3.9"},
	{ID: 386, Column: "RRAH", Width: 10, Model: Constant, Since: "3.3.9"},
	{ID: 387, Column: "RRAP", Width: 10, Model: Constant, Since: "3.3.9"},
	{ID: 388, Column: "RRAL", Width: 10, Model: Constant, Since: "3.3.9"},
	{ID: 389, Column: "RRAN", Width: 10, Model: Constant, Since: "3.3.9"},
	{ID: 390, Column: "RPSBE", Width: 16, Model: Unsupported},
	{ID: 391, Column: "RPDBE", Width: 16, Model: Unsupported},
	{ID: 392, Column: "RPPEN", Width: 10, Model: Unsupported},
	{ID: 393, Column: "URMPS", Width: 10, Model: Counter},
	{ID: 394, Column: "CRMPS", Width: 10, Model: Counter},
	{ID: 395, Column: "RRF", Width: 20},
	{ID: 396, Column: "RRP", Width: 20},
	{ID: 409, Column: "NFELT", Width: 20, Model: Counter},
	{ID: 419, Column: "NDELT", Width: 20, Model: Counter},
	{ID: 429, Column: "NRELT", Width: 20, Model: Counter},
	{ID: 439, Column: "NRCLT", Width: 20, Model: Counter},
	{ID: 449, Column: "NBWLT", Unit: "MB/s", Width: 20, Model: Rate, High: 400000},
	{ID: 450, Column: "GNVERR", Width: 5},
	{ID: 843, Column: "NTXBWLT", Unit: "MB/s", Width: 20, Model: Rate, High: 200000, Since: "4.2.3"},
	{ID: 897, Column: "NRXBWLT", Unit: "MB/s", Width: 20, Model: Rate, High: 200000, Since: "4.2.3"},
	{ID: 1204, Column: "NLMALP", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1205, Column: "NLBUFO", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1206, Column: "NLRCVE", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1207, Column: "NLRCVRE", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1208, Column: "NLRCVGE", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1209, Column: "NLLLIE", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1210, Column: "NLXMITD", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1211, Column: "NLLRS", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1212, Column: "NLLRF", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1213, Column: "NLLR", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1214, Column: "NLSYME", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1216, Column: "NLSYMBF", Width: 7, Float: true, Since: "4.2.0"},
	{ID: 1218, Column: "NLEFBF", Unit: "BER", Width: 7, Float: true, Since: "4.2.0"},
	{ID: 1219, Column: "NLEFE", Width: 20, Model: Counter, Since: "4.2.0"},
	{ID: 1400, Column: "C2CLNKINT", Width: 20, Model: Unsupported, Since: "4.2.0"},
	{ID: 1420, Column: "CLKPCNS", Width: 20, Model: Counter, High: 1e6, Since: "4.2.3"},
	{ID: 1421, Column: "CLKBSTNS", Width: 20, Model: Counter, Since: "4.2.3"},
	{ID: 1422, Column: "CLKSWTHNS", Width: 20, Model: Counter, Since: "4.2.3"},
	{ID: 1423, Column: "CLKHWTHNS", Width: 20, Model: Counter, Since: "4.2.3"},
	{ID: 1424, Column: "CLKEPBSNS", Width: 20, Model: Counter, Since: "4.2.3"},
	{ID: 1507, Column: "MEMUNR", Width: 10, Since: "4.5.3"},
	{ID: 1523, Column: "GPURECOV", Width: 10, Since: "4.5.3"},
}

// profilingFields are read through GPM, or the profiling module before Hopper.
var profilingFields = []Field{
	{ID: 1001, Column: "GRACT", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1002, Column: "SMACT", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1003, Column: "SMOCC", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1004, Column: "TENSO", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1005, Column: "DRAMA", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1006, Column: "FP64A", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1007, Column: "FP32A", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1008, Column: "FP16A", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1009, Column: "PCITX", Width: 20, Level: OfBoardOnly, High: 5e10},
	{ID: 1010, Column: "PCIRX", Width: 20, Level: OfBoardOnly, High: 5e10},
	{ID: 1011, Column: "NVLTX", Width: 20, Level: OfBoardOnly, High: 2e11},
	{ID: 1012, Column: "NVLRX", Width: 20, Level: OfBoardOnly, High: 2e11},
	{ID: 1013, Column: "TIMMA", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1014, Column: "THMMA", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1015, Column: "TDFMA", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1016, Column: "INTAC", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1033, Column: "NVOFA0", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1034, Column: "NVOFA1", Width: 5, Float: true, Level: OfInstance, High: 1},
	{ID: 1080, Column: "HMCACHEHT", Width: 20, Level: OfBoardOnly, High: 1e6, Since: "4.2.0"},
	{ID: 1091, Column: "PCICTX", Width: 20, Level: OfBoardOnly, Model: Counter, Low: 1e12, High: 5e9, Since: "4.6.0"},
	{ID: 1092, Column: "PCICRX", Width: 20, Level: OfBoardOnly, Model: Counter, Low: 1e12, High: 5e9, Since: "4.6.0"},
}

package dmon

import "strings"

// dialects are texts in dmon's layouts, and their samples.
var dialects = []struct {
	name, text string
	want       []tick
}{
	{"4.5: entity column of 16, units, trailing blanks", "" +
		"#Entity         POWER             GRACT        \n" +
		"ID               W                             \n" +
		"GPU 0           412.337           0.987        \n" +
		"GPU-I 7         412.337           N/A          \n" +
		"GPU-I 8         412.337           0.250        \n" +
		"GPU 1           88.100            0.000        \n" +
		"GPU-I 14        88.100            0.125        \n" +
		"GPU 0           413.000           1.000        \n",
		[]tick{{values{
			gpuKey(0, "POWER"): 412.337, gpuKey(0, "GRACT"): 0.987,
			instanceKey(0, 7, "POWER"): 412.337,
			instanceKey(0, 8, "POWER"): 412.337, instanceKey(0, 8, "GRACT"): 0.25,
			gpuKey(1, "POWER"): 88.1, gpuKey(1, "GRACT"): 0,
			instanceKey(1, 14, "POWER"): 88.1, instanceKey(1, 14, "GRACT"): 0.125,
		}, 0}, {values{gpuKey(0, "POWER"): 413, gpuKey(0, "GRACT"): 1}, 0}}},
	{"3.x: entity column of 10, order by chance, header again", "" +
		"#Entity   GRACT        TMPTR        \n" +
		"ID                      C           \n" +
		"GPU 7     0.700        70           \n" +
		"GPU 6     0.600        60           \n" +
		"#Entity   GRACT        TMPTR        \n" +
		"ID                      C           \n" +
		"GPU 7     0.710        71           \n" +
		"GPU 6     0.610        61           \n",
		[]tick{{values{gpuKey(7, "GRACT"): .7, gpuKey(7, "TMPTR"): 70, gpuKey(6, "GRACT"): .6, gpuKey(6, "TMPTR"): 60}, 0},
			{values{gpuKey(7, "GRACT"): .71, gpuKey(7, "TMPTR"): 71, gpuKey(6, "GRACT"): .61, gpuKey(6, "TMPTR"): 61}, 0}}},
	{"2.x: right-aligned, overflowing entity column, instances before any GPU", "" +
		"  # Entity  GRACT  TENSO  DRAMA\n" +
		"      Id\n" +
		"   GPU-I 9  0.010  0.020  0.030\n" +
		"   GPU 0  0.429  0.011  0.400\n" +
		"   GPU-I 0  0.000    N/A  0.000\n" +
		"   GPU 0  0.500  0.600  0.700\n",
		[]tick{{values{
			`{entity="GPU-I 9",gpu_instance_entity="9"}GRACT`: .01, `{entity="GPU-I 9",gpu_instance_entity="9"}TENSO`: .02,
			`{entity="GPU-I 9",gpu_instance_entity="9"}DRAMA`: .03,
			gpuKey(0, "GRACT"): .429, gpuKey(0, "TENSO"): .011, gpuKey(0, "DRAMA"): .4,
			instanceKey(0, 0, "GRACT"): 0, instanceKey(0, 0, "DRAMA"): 0,
		}, 0}, {values{gpuKey(0, "GRACT"): .5, gpuKey(0, "TENSO"): .6, gpuKey(0, "DRAMA"): .7}, 0}}},
	{"# EntityId without units", "" +
		"# EntityId  GPUTL  POWER\n" +
		"GPU 0  97  301.250\n" +
		"GPU 1  3  60.500\n" +
		"GPU 0  98  302.250\n",
		[]tick{{values{gpuKey(0, "GPUTL"): 97, gpuKey(0, "POWER"): 301.25, gpuKey(1, "GPUTL"): 3, gpuKey(1, "POWER"): 60.5}, 0},
			{values{gpuKey(0, "GPUTL"): 98, gpuKey(0, "POWER"): 302.25}, 0}}},
	{"CRLF, blank lines, a shell prompt before, indented unevenly by copying", "" +
		"root@node1:~$ dcgmi dmon -e 1002,155\r\n" +
		"#Entity    SMACT        POWER             \r\n" +
		"    ID                   W                \r\n" +
		"\r\n" +
		"    GPU 0      0.500        300.000           \r\n" +
		"    GPU 1      0.250        200.000\r\n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, gpuKey(0, "POWER"): 300, gpuKey(1, "SMACT"): .25, gpuKey(1, "POWER"): 200}, 1}}},
	{"blanks collapsed and tabs", "" +
		"#Entity         SMACT        POWER             \n" +
		"GPU 0 0.500 300.000\n" +
		"GPU 1\t0.250\t200.000\n" +
		"GPU 0 0.500 300.000\n" +
		"GPU 1\t0.250\t200.000\n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, gpuKey(0, "POWER"): 300, gpuKey(1, "SMACT"): .25, gpuKey(1, "POWER"): 200}, 0},
			{values{gpuKey(0, "SMACT"): .5, gpuKey(0, "POWER"): 300, gpuKey(1, "SMACT"): .25, gpuKey(1, "POWER"): 200}, 0}}},
	{"a tab that puts a digit under the header", "" +
		"#Entity   SMACT        \n" +
		"GPU 0\t0.500\n",
		[]tick{{values{gpuKey(0, "SMACT"): .5}, 0}}},
	{"cells out of place, but one for each column", "" +
		"#Entity    SMACT        TENSO        \n" +
		"GPU 0      0.100       12.500        \n" +
		"GPU 1       0.200        0.300       \n",
		[]tick{{values{gpuKey(0, "SMACT"): .1, gpuKey(0, "TENSO"): 12.5, gpuKey(1, "SMACT"): .2, gpuKey(1, "TENSO"): .3}, 0}}},
	{"cells out of place, and one is missing", "" +
		"#Entity    SMACT        TENSO        POWER             \n" +
		"GPU 0      0.100       12.500                          \n" +
		"GPU 1       0.200        0.300\n",
		[]tick{{values{}, 2}}},
	{"4.x: an empty cell, at the front, in the middle, at the end: its row is left out", "" +
		"#Entity    SMACT        TENSO        POWER             \n" +
		"GPU 0                   0.100        300.000           \n" +
		"GPU 1      0.200                     301.000           \n" +
		"GPU 2      0.300        0.400\n" +
		"GPU 3      \n" +
		"GPU 4      0.300        0.400        302.000           \n",
		[]tick{{values{gpuKey(4, "SMACT"): .3, gpuKey(4, "TENSO"): .4, gpuKey(4, "POWER"): 302}, 3}}},
	{"3.x closes its gaps: a row that ends early says nothing", "" +
		"#Entity   SMACT        TENSO        \n" +
		"GPU 0     0.100        0.200        \n" +
		"GPU 1     0.200                     \n" +
		"GPU 2                               \n" +
		"GPU 3     0.500        0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .1, gpuKey(0, "TENSO"): .2, gpuKey(3, "SMACT"): .5, gpuKey(3, "TENSO"): .6}, 1}}},
	{"2.x: a row with a cell too few or too many", "" +
		"# Entity  SMACT  TENSO\n" +
		"   GPU 0  0.100\n" +
		"   GPU 1  0.100  0.200  0.300\n" +
		"   GPU 2  0.100  0.200\n",
		[]tick{{values{gpuKey(2, "SMACT"): .1, gpuKey(2, "TENSO"): .2}, 2}}},
	{"a row longer than its header", "" +
		"#Entity    SMACT        TENSO        \n" +
		"GPU 0      0.100        0.200        0.300\n" +
		"GPU 1      0.400        0.500        \n",
		[]tick{{values{gpuKey(1, "SMACT"): .4, gpuKey(1, "TENSO"): .5}, 1}}},
	{"cells that are cut, not numbers, absent", "" +
		"#Entity    TVIOL             XIDER        SMACT        \n" +
		"GPU 0      1234567890123...  -7           NAN          \n" +
		"GPU 1      1234567890123456  N/A          INF          \n" +
		"GPU 2      12e4              0x1f         -INF         \n" +
		"GPU 3      007               .5           5.           \n",
		[]tick{{values{gpuKey(0, "XIDER"): -7, gpuKey(1, "TVIOL"): 1234567890123456}, 3}}},
	{"a string column", "" +
		"#Entity         DVNAM                       SMACT        \n" +
		"GPU 0           NVIDIA H100 80GB HBM3       0.500        \n",
		[]tick{{values{}, 1}}},
	{"a column whose name was cut", "" +
		"#Entity    VERYLONGN...  SMACT        \n" +
		"GPU 0      5             0.500        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5}, 0}}},
	{"entities that are not GPUs", "" +
		"#Entity         POWER             \n" +
		"ID               W                \n" +
		"GPU 0           300.000           \n" +
		"GPU-CI 0        301.000           \n" +
		"Switch 3        302.000           \n" +
		"vGPU 4          303.000           \n" +
		"CPU 0           304.000           \n" +
		"CPU Core 3      305.000           \n" +
		"CPU Core 3      305.000           \n" +
		"CX 1            306.000           \n" +
		"LINK 16843009   307.000           \n" +
		"GPU 0 LINK 5    308.000           \n" +
		"GPU 10 LINK 17  308.000           \n" +
		"SW 0 LINK 5     309.000           \n" +
		"UNKNOWN 9       310.000           \n" +
		"GPU 1           311.000           \n",
		[]tick{{values{gpuKey(0, "POWER"): 300, gpuKey(1, "POWER"): 311}, 0}}},
	{"an id of ten digits, and of eleven", "" +
		"#Entity         POWER             \n" +
		"GPU 4294967295  300.000           \n" +
		"GPU 42949672950 301.000           \n",
		[]tick{{values{gpuKey(4294967295, "POWER"): 300}, 1}}},
	{"2.x: an instance's id that is longer than the header's first column", "" +
		"  # Entity  GRACT\n" +
		"   GPU-I 12345678  0.010\n",
		[]tick{{values{`{entity="GPU-I 12345678",gpu_instance_entity="12345678"}GRACT`: .01}, 0}}},
	{"a header without columns, and rows without cells", "" +
		"#Entity\n" +
		"GPU 0\n" +
		"#Entity    SMACT        \n" +
		"GPU 0\n" +
		"GPU 1      0.500\n",
		[]tick{{values{gpuKey(1, "SMACT"): .5}, 1}}},
	{"one column twice: the first counts", "" +
		"#Entity    SMACT        SMACT        \n" +
		"GPU 0      0.100        0.200        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .1}, 0}}},
	{"words that begin like an entity", "" +
		"#Entity    SMACT        \n" +
		"GPU7       0.500        \n" +
		"GPU lost   0.500        \n" +
		"GPU\n" +
		"GPU 0LINK 5 0.500       \n" +
		"CPU is busy\n" +
		"GPU 1      0.600        \n",
		[]tick{{values{gpuKey(1, "SMACT"): .6}, 5}}},
	{"an entity that overflows its column", "" +
		"#Entity   POWER             \n" +
		"GPU-I 10001\n",
		[]tick{{values{}, 1}}},
	{"2.x: cells that are cut, no numbers, too large, absent, and rows without any", "" +
		"  # Entity  TVIOL  SMACT\n" +
		"   GPU 0  1234567890123...  0.500\n" +
		"   GPU 1  5.x  0.600\n" +
		"   GPU 2  " + strings.Repeat("9", 400) + "  0.600\n" +
		"   GPU 3\n" +
		"   GPU 4N/A  0.600\n",
		[]tick{{values{gpuKey(0, "SMACT"): .5}, 4}}},
	{"a number too large", "" +
		"#Entity    SMACT        TVIOL        \n" +
		"GPU 0      0.500        " + strings.Repeat("9", 400) + "\n",
		[]tick{{values{}, 1}}},
	{"the last cell is out of place", "" +
		"#Entity    SMACT        TENSO        POWER             \n" +
		"GPU 0      0.100        0.200       300.000           \n",
		[]tick{{values{gpuKey(0, "SMACT"): .1, gpuKey(0, "TENSO"): .2, gpuKey(0, "POWER"): 300}, 0}}},
	{"a comment between the rows", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"# HELP gpu is none of ours\n" +
		"GPU 1      0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, gpuKey(1, "SMACT"): .6}, 0}}},
	{"a header separates two ticks without a common entity", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"#Entity    SMACT        \n" +
		"GPU 1      0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5}, 0}, {values{gpuKey(1, "SMACT"): .6}, 0}}},
	{"an entity that overflows its column into a value", "" +
		"#Entity   POWER             \n" +
		"GPU-I 10001412.337\n",
		[]tick{{values{}, 1}}},
	{"errors between the rows, one that begins like a row", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"GPU 0 is lost\n" +
		"Error getting values information. Return -21: Host engine connection invalid/disconnected\n" +
		"GPU 1      0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, gpuKey(1, "SMACT"): .6}, 2}}},
	{"rows before any header", "" +
		"GPU 0      0.500        \n" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .6}, 1}}},
	{"a second header with other columns", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"#Entity    TMPTR        SMACT        \n" +
		"GPU 0      50           0.600        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5}, 0}, {values{gpuKey(0, "TMPTR"): 50, gpuKey(0, "SMACT"): .6}, 0}}},
	{"a GPU that comes, goes, and reads N/A throughout", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"GPU 1      0.600        \n" +
		"GPU 1      0.610        \n" +
		"GPU 0      N/A          \n" +
		"GPU 0      0.520        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, gpuKey(1, "SMACT"): .6}, 0}, {values{gpuKey(1, "SMACT"): .61}, 0},
			{values{gpuKey(0, "SMACT"): .52}, 0}}},
	{"an instance that moves to another GPU", "" +
		"#Entity    SMACT        \n" +
		"GPU 0      0.500        \n" +
		"GPU-I 7    0.100        \n" +
		"GPU 1      0.600        \n" +
		"GPU-I 7    0.200        \n",
		[]tick{{values{gpuKey(0, "SMACT"): .5, instanceKey(0, 7, "SMACT"): .1, gpuKey(1, "SMACT"): .6}, 0},
			{values{`{entity="GPU-I 7",gpu_instance_entity="7"}SMACT`: .2}, 0}}},
}

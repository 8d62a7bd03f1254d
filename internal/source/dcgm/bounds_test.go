package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// many returns n texts of a format with their numbers, joined.
func many(n int, format string) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, format, i)
	}
	return s.String()
}

// What a broken command prints without end takes bounded memory: 256 boards of 64 instances, 4 MiB,
// 4096 bytes a line.
func TestBounds(t *testing.T) {
	device := "<mig_device><index>%[1]d</index><gpu_instance_id>%[1]d</gpu_instance_id></mig_device>"
	gpu := func(devices int, uuid string) string {
		return "<gpu><mig_devices>" + many(devices, device) + "</mig_devices><uuid>" + uuid + "</uuid></gpu>"
	}
	boards := func(text string) int { return len(parseHierarchy([]byte(text))) }
	instances := func(text string) int { return len(parseHierarchy([]byte(text))[0].instances) }
	report := func(text string) int { return len(parseReport([]byte(text))) }
	all := func(text string) int { return len(slices.Collect(lines([]byte(text)))) }
	hierarchy, cut := "| GPU %[1]d | GPU x (EntityID: %[1]d) |\n", "| -> I 0/%[1]d | GPU Instance (EntityID: %[1]d) |\n"
	for name, c := range map[string]struct{ got, want int }{
		"boards":               {len(parseDiscovery([]byte(heading + many(300, "| %d | Name: x |\n")))), 256},
		"boards in instances":  {boards(many(300, hierarchy)), 256},
		"the last board":       {boards(many(256, hierarchy)), 256},
		"instances":            {instances("| GPU 0 | GPU x (EntityID: 0) |\n" + many(100, cut)), 64},
		"the last instance":    {instances("| GPU 0 | GPU x (EntityID: 0) |\n" + many(64, cut)), 64},
		"boards in a query":    {len(parseQuery([]byte(many(300, "%[1]d, GPU-%[1]d, , ,\n")))), 256},
		"boards in a list":     {len(parseList([]byte(many(300, "GPU %[1]d: x (UUID: GPU-%[1]d)\n")))), 256},
		"boards with texts":    {len(parseTexts([]byte("#Entity DRVER\n"+many(300, "GPU %d   5\n")), []int{0})), 256},
		"listed MIG devices":   {len(parseList([]byte("GPU 0: x\n" + many(100, "MIG 1g.10gb Device %[1]d: (UUID: MIG-%[1]d)\n")))[0].loose), 64},
		"MIG devices":          {report("<log>" + gpu(16384, uuid0) + gpu(1, uuid1) + "</log>"), 16384},
		"the last MIG devices": {report("<log>" + gpu(16382, uuid0) + gpu(1, uuid1) + gpu(1, "GPU-2") + "</log>"), 16384},
		"output":               {all(strings.Repeat(strings.Repeat("x", 1023)+"\n", 4100)), 4096},
		"a long line":          {all(strings.Repeat("x", 4095) + "\n"), 1},
		"a line that is cut":   {all(strings.Repeat("x", 4096) + "\n"), 0},
		"a long text":          {len(known(strings.Repeat("x", 256))), 256},
		"a text that is cut":   {len(known(strings.Repeat("x", 257))), 0},
		"a high id":            {id("2147483647"), 2147483647},
		"an id beyond 32 bits": {id("2147483648"), Unknown},
		"a negative id":        {id("-2"), Unknown},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

// A mapping has 4096 files of less than 64 KiB, with ids of up to 256 bytes.
func TestMappingBounds(t *testing.T) {
	dir := fstest.MapFS{}
	for i := range 4097 {
		dir[fmt.Sprint(i)] = &fstest.MapFile{Data: []byte("1\n")}
	}
	m := NewMapping(dir, "d")
	if _, err := m.Refresh(noon); err != nil || len(m.Jobs()) != 4096 {
		t.Errorf("%v: the jobs of %d devices", err, len(m.Jobs()))
	}
	long, tooLong := strings.Repeat("x", 256), strings.Repeat("y", 257)
	full := strings.Repeat("1234567\n", 8191) + "2\n34" // 65532 bytes
	for text, want := range map[string][]string{
		long + "\n" + tooLong + "\n1": {long, "1"},
		full + "567":                  {"1234567", "2", "34567"}, // 65535 bytes
		full + "5678":                 {"1234567", "2"},          // 65536 bytes: the last id may go on
	} {
		m := NewMapping(fstest.MapFS{"0": {Data: []byte(text)}}, "d")
		if _, err := m.Refresh(noon); err != nil || !slices.Equal(m.Jobs().Of("0", ""), want) {
			t.Errorf("%v: %.20q of %d bytes", err, m.Jobs().Of("0", ""), len(text))
		}
	}
}

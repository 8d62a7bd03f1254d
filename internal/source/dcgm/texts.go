package dcgm

import (
	"slices"
	"strings"
	"unicode"
)

// NumTexts is the number of text fields of a board that a counters file can make labels.
const NumTexts = 8

// Text is a field whose value is a text that does not change while the driver is loaded.
type Text struct {
	// ID is DCGM's number.
	ID int
	// Names are its names in counters files: the older one, and that of DCGM 4.6.
	Names []string
}

// Texts are the fields that Device.Texts has, the driver's version first.
var Texts = [NumTexts]Text{
	{1, []string{"DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"}},
	{2, []string{"DCGM_FI_NVML_VERSION", "DCGM_FI_SYSTEM_NVML_VERSION"}},
	{53, []string{"DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL"}},
	{56, []string{"DCGM_FI_DEV_OEM_INFOROM_VER", "DCGM_FI_DEV_INFOROM_OEM_VERSION"}},
	{80, []string{"DCGM_FI_DEV_ECC_INFOROM_VER", "DCGM_FI_DEV_INFOROM_ECC_VERSION"}},
	{81, []string{"DCGM_FI_DEV_POWER_INFOROM_VER", "DCGM_FI_DEV_INFOROM_POWER_VERSION"}},
	{82, []string{"DCGM_FI_DEV_INFOROM_IMAGE_VER", "DCGM_FI_DEV_INFOROM_IMAGE_VERSION"}},
	{85, []string{"DCGM_FI_DEV_VBIOS_VERSION"}},
}

// textOf returns the index in Texts of a name, Unknown if there is none.
func textOf(name string) int {
	return slices.IndexFunc(Texts[:], func(t Text) bool { return slices.Contains(t.Names, name) })
}

// parseTexts reads one sample of dmon; columns has the index in Texts of each column. Values
// that dmon cut short are unknown, as are UUIDs.
//
//	#Entity         DRVER          DEVBVER
//	ID              #
//	GPU 0           550.163.01     96.00.74.00.09
func parseTexts(output []byte, columns []int) []board {
	var boards []board
	var starts []int
	for line := range lines(output) {
		if strings.HasPrefix(line, "#") {
			starts = words(line)
		}
		rest, is := strings.CutPrefix(line, "GPU ")
		if !is || len(starts) != len(columns)+1 {
			continue
		}
		entity, _, _ := strings.Cut(rest, " ")
		b := newBoard(id(entity))
		if b.Entity == Unknown {
			continue
		}
		for i, text := range columns {
			b.Texts[text] = cellText(line, starts[i+1:])
		}
		b.Driver = b.Texts[0]
		boards = append(boards, b)
	}
	return boards
}

// cellText returns the cell of a line that begins at the first of starts and ends before
// the next.
func cellText(line string, starts []int) string {
	end := len(line)
	if len(starts) > 1 {
		end = min(end, starts[1])
	}
	text := strings.TrimSpace(line[min(starts[0], end):end])
	if strings.HasSuffix(text, "...") {
		return ""
	}
	return known(text)
}

// words returns where the words of a line begin.
func words(line string) (starts []int) {
	blank := true
	for i, r := range line {
		if blank && !unicode.IsSpace(r) {
			starts = append(starts, i)
		}
		blank = unicode.IsSpace(r)
	}
	return starts
}

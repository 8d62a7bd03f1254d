package fake

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// metricGroup is fields that share a resource of the profiler. Groups of one
// letter cannot be read at the same time.
type metricGroup struct {
	name   string
	fields [][2]int // from, to
}

// gpm are the groups from Hopper on.
var gpm = []metricGroup{
	{"A.0", [][2]int{{1001, 1034}}}, {"B.0", [][2]int{{1040, 1083}, {1532, 1533}}}, {"C.0", [][2]int{{1084, 1096}}},
}

// ampere are the groups of an A100.
var ampere = []metricGroup{
	{"A.1", [][2]int{{1002, 1004}, {1006, 1006}}}, {"A.2", [][2]int{{1008, 1008}, {1013, 1014}}},
	{"A.3", [][2]int{{1007, 1007}}}, {"B.0", [][2]int{{1005, 1005}}}, {"C.0", [][2]int{{1009, 1010}}},
	{"D.0", [][2]int{{1001, 1001}}}, {"E.0", [][2]int{{1011, 1012}}},
}

func (f *fake) profile(set map[string]string) (status, error) {
	chosen, err := one(set, "list", "pause", "resume")
	if err != nil {
		return 0, err
	}
	_, board := set["gpu-id"]
	if _, group := set["group-id"]; group && board {
		return 0, usageError{message: "Both GPU and group ID specified. Please use only one at a time"}
	}
	if result := f.connect("profile", set); result != ok {
		return result, nil
	}
	if chosen != "list" {
		return f.setPaused(chosen), nil
	}
	if _, result, text := f.group(set); result != ok {
		fmt.Fprintln(f.err, text)
		return result, nil
	}
	if refused, is := f.failure(dcgmitest.ListRefused, "profile", true); is {
		f.out.printf("Error: Unable to Get supported metric groups: %s.\n", status(refused.Code))
		return status(refused.Code), nil
	}
	_, asJSON := set["json"]
	f.printGroups(asJSON)
	return ok, nil
}

// printGroups prints the fields of each group that the release has and the field
// table knows.
func (f *fake) printGroups(asJSON bool) {
	groups := gpm
	if f.scenario.PreHopper {
		groups = ampere
	}
	var rows [][]string
	keyed := map[string]any{}
	for i, group := range groups {
		n := 0
		for _, span := range group.fields {
			for id := span[0]; id <= span[1]; id++ {
				field, known := dcgmitest.FieldByID(f.release, id)
				if !known {
					continue
				}
				cells := []string{group.name, strconv.Itoa(id), field.Name}
				rows = append(rows, cells)
				keyed[fmt.Sprintf("%d_%d", i, n)] = object(cells)
				n++
			}
		}
	}
	if !asJSON {
		f.out.printf("%s", table(groupColumns, [][][]string{rows}, false, 16, 10, 54))
		return
	}
	// The members are the real ones; blanks between them may differ.
	text, _ := json.MarshalIndent(map[string]any{"body": keyed}, "", "\t")
	f.out.printf("%s\n", text)
}

var groupColumns = []string{"Group.Subgroup", "Field ID", "Field Tag"}

// object returns one row as JSON has it.
func object(cells []string) map[string]any {
	children := map[string]any{}
	for i, name := range groupColumns {
		children[name] = map[string]string{"value": cells[i]}
	}
	return map[string]any{"children": children}
}

// paused is the file that marks profiling as paused by an earlier command.
func (f *fake) paused() string { return f.path + ".paused" }

// setPaused pauses or resumes profiling, which only boards before Hopper can.
func (f *fake) setPaused(action string) status {
	if !f.scenario.PreHopper {
		f.out.printf("Error: unable to %s profiling metrics: %s.\n", action, notSupported)
		return notSupported
	}
	if action == "pause" {
		_ = os.WriteFile(f.paused(), nil, 0o644)
	} else {
		_ = os.Remove(f.paused())
	}
	f.out.printf("Successfully %sd profiling.\n", action)
	return ok
}

package dcgm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestParse(t *testing.T) {
	// The boards are out of order, and one is there twice.
	const again = "| 0      | Name: another |\n"
	o := &outputs{
		discovery: []byte("2 GPUs found.\n" + heading + "| 1      | Device UUID: " + uuid1 + " |\n" + rule + board0 + rule + again + rule),
		driver:    []byte("#Entity         DRVER          \nID              #              \nGPU 0           580.105.08     \nGPU 1           580.105.08     \n"),
		list:      []byte("GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid1 + ")\n"),
	}
	n := o.parse()
	if len(n) != 2 {
		t.Fatalf("%d boards", len(n))
	}
	// nvidia-smi was run in a cgroup that only has the second board.
	hidden, seen := n[0], n[1]
	if hidden.index != "" || hidden.Driver != "580.105.08" || hidden.UUID != uuid0 || hidden.Model != "NVIDIA H100 80GB HBM3" {
		t.Errorf("%+v", hidden)
	}
	if seen.index != "0" || seen.Entity != 1 || seen.Driver != "580.105.08" || seen.Model != "NVIDIA H100 80GB HBM3" {
		t.Errorf("%+v", seen)
	}
	devices := flatten(n).Devices
	same(t, devices[0].CUDA, (*canonical.CUDANames)(nil))
	same(t, devices[1].CUDA, &canonical.CUDANames{Index: "0"})
}

// The driver's version is that of the first board that has it, in the output of dmon 4.6.0 and 3.3.9.
func TestDriver(t *testing.T) {
	for output, want := range map[string]string{
		"#Entity         DRVER          \nID              #              \nGPU 0           N/A            \nGPU 11          550.163.01     \n": "",
		"#Entity   DRVER          \nID        #              \nGPU 11    550.163.01     \n":                                                    "550.163.01",
		"#Entity DRVER\nGPU 0 a-very-long-ver...\nGPU 1 5\n":                                                                                   "5",
		"": "", "Error: invalid field\n": "", "GPU 0": "",
	} {
		if got := parseDriver([]byte(output)); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// Either table of dcgmi may lack the UUID of a board that is cut.
func TestInstancesByEntity(t *testing.T) {
	for _, c := range []struct {
		discovered, cut, want string
		instances             int
	}{
		{uuid0, uuid0, uuid0, 1},
		{uuid0, "", uuid0, 1},
		{"", uuid0, uuid0, 1},
		{"", "", "", 1},
		{uuid0, uuid1, uuid0, 0},
	} {
		n := (&outputs{
			discovery: []byte(heading + "| 0 | Device UUID: " + c.discovered + " |\n"),
			hierarchy: []byte("| GPU 0 | GPU " + c.cut + " (EntityID: 0) |\n| -> I 0/1 | GPU Instance (EntityID: 3) |\n"),
		}).parse()
		if len(n) != 1 || n[0].UUID != c.want || len(n[0].instances) != c.instances {
			t.Errorf("%q and %q: %+v", c.discovered, c.cut, n)
		}
	}
}

// What is known about instances depends on which of the commands answered.
func TestInstances(t *testing.T) {
	mixed := "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n" +
		"  MIG 1c.3g.40gb  Device  0: (UUID: " + mig0 + ")\n" +
		"  MIG 1c.3g.40gb  Device  1: (UUID: " + mig1 + ")\n" +
		"  MIG 1g.10gb     Device  2: (UUID: " + mig2 + ")\n"
	a, b := instance(0, "2"), instance(1, "9")
	with := func(d Device, profile string, devices ...canonical.MIGDevice) Device {
		if d.Profile = profile; devices != nil {
			d.CUDA = &canonical.CUDANames{MIG: devices}
		}
		return d
	}
	tests := []struct {
		name, list, report string
		want               []Device
		loose              int
	}{
		{"no nvidia-smi", "", "", []Device{a, b}, 0},
		{"devices that differ, and no report", mixed, "", []Device{a, b}, 3},
		{"a report", mixed, reportText, []Device{
			with(a, "3g.40gb", mig(0, mig0, "3g.40gb"), mig(1, mig1, "3g.40gb")),
			with(b, "1g.10gb", mig(2, mig2, "1g.10gb")),
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := (&outputs{discovery: []byte(heading + board0 + rule + board1), hierarchy: []byte(hierarchy), list: []byte(tt.list), report: []byte(tt.report)}).parse()
			same(t, n[0].instances, tt.want)
			if len(n[0].loose) != tt.loose {
				t.Errorf("%d loose devices, want %d", len(n[0].loose), tt.loose)
			}
			// The other board has an instance without a compute instance, whose
			// profile is unknown.
			same(t, n[1].instances, []Device{instance(7, "5")})
		})
	}
}

func TestBoardsOfBothTables(t *testing.T) {
	n := (&outputs{discovery: []byte(heading + board0 + rule + board1), hierarchy: []byte(hierarchy)}).parse()
	if len(n) != 2 || n[0].UUID != uuid0 || n[1].Model != "NVIDIA H100 80GB HBM3" ||
		len(n[0].instances) != 2 || len(n[1].instances) != 1 {
		t.Errorf("%+v", n)
	}
	// Board 0 was exchanged between two calls: these are not its instances.
	other := (&outputs{discovery: []byte(heading + "| 0 | Device UUID: " + uuid1 + " |\n"), hierarchy: []byte(hierarchy)}).parse()
	if len(other[0].instances) != 0 {
		t.Errorf("%+v", other)
	}
	flat := flatten(n)
	if at := flat.Find(true, 7); at != 4 || flat.Devices[at].Board != 3 || flat.Devices[at].GPU != "1" || flat.Devices[at].Instance != "5" || flat.Devices[at].UUID != uuid1 {
		t.Errorf("instance 7 is %d of %+v", at, flat)
	}
	if flat.Find(true, 8) != Unknown || flat.Find(false, 7) != Unknown {
		t.Error("there is neither an instance 8 nor a board 7")
	}
}

func TestANameThatWasTooWide(t *testing.T) {
	o := &outputs{
		discovery: []byte(heading + "| 0 | Name: NVIDIA RTX PRO 6000 Bl... |\n| | Device UUID: " + uuid0 + " |\n"),
		list:      []byte("GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: " + uuid0 + ")\n"),
	}
	if n := o.parse(); n[0].Model != "NVIDIA RTX PRO 6000 Blackwell Server Edition" {
		t.Errorf("%+v", n)
	}
}

func TestMovedAndEqual(t *testing.T) {
	base := func() []board {
		whole, cut := newBoard(0), newBoard(1)
		whole.UUID, cut.UUID = uuid0, uuid1
		cut.instances = []Device{instance(7, "1"), instance(8, "2")}
		cut.instances[0].Profile = "3g.40gb"
		return []board{whole, cut}
	}
	tests := []struct {
		name         string
		change       func(n []board)
		moved, equal bool
	}{
		{"nothing", func([]board) {}, false, true},
		{"a driver", func(n []board) { n[0].Driver = "580" }, false, false},
		{"a UUID that is not known", func(n []board) { n[0].UUID = "" }, false, false},
		{"another entity", func(n []board) { n[0].Entity, n[0].GPU = 5, "5" }, false, false},
		{"another board", func(n []board) { n[0].UUID = "GPU-x" }, true, false},
		{"an instance that is gone", func(n []board) { n[1].instances = n[1].instances[:1] }, false, false},
		{"another instance", func(n []board) { n[1].instances[1].Instance = "9" }, true, false},
		{"another size", func(n []board) { n[1].instances[0].Profile = "4g.40gb" }, true, false},
		{"a size that is known at last", func(n []board) { n[1].instances[1].Profile = "4g.40gb" }, false, false},
		{"an instance of another board", func(n []board) {
			n[0].instances, n[1].instances = n[1].instances, nil
		}, true, false},
		{"an instance of another board, whose UUID is not known", func(n []board) {
			n[0].UUID, n[0].instances, n[1].instances = "", n[1].instances, nil
		}, true, false},
	}
	for _, tt := range tests {
		a, b := base(), base()
		tt.change(b)
		x, y := flatten(a), flatten(b)
		if got := Moved(&x, &y); got != tt.moved {
			t.Errorf("%s: moved is %v", tt.name, got)
		}
		if got := reflect.DeepEqual(&x, &y); got != tt.equal {
			t.Errorf("%s: equal is %v", tt.name, got)
		}
	}
}

func TestEntities(t *testing.T) {
	plain := func() Inventory {
		boards := make([]board, 8)
		for i := range boards {
			boards[i] = newBoard(i)
		}
		return flatten(boards)
	}
	lost := plain()
	lost.Devices[3].Inactive = true
	boards := []board{newBoard(0), newBoard(1), newBoard(2), newBoard(3)}
	boards[1].instances = []Device{instance(7, "1"), instance(8, "2")}
	boards[2].instances = []Device{instance(14, "1")}
	boards[3].instances = []Device{instance(21, "3")}
	cut := flatten(boards)
	tests := []struct {
		name   string
		n      Inventory
		chosen []int
		want   string
	}{
		{"all", plain(), []int{0, 1, 2, 3, 4, 5, 6, 7}, "0,1,2,3,4,5,6,7"},
		{"some boards", plain(), []int{0, 2, 3}, "0,2,3"},
		{"dmon leaves instances out by itself", cut, []int{0, 1, 2, 3, 4, 5, 6, 7}, "0,i:7,i:8,i:14,i:21"},
		{"one instance", cut, []int{3}, "i:8"},
		{"an inactive board", lost, []int{2, 3, 4}, "2,4"},
		{"a cut board among others", cut, []int{0, 4, 5}, "0,i:14"},
	}
	for _, tt := range tests {
		s := canonical.Selection{All: len(tt.chosen) == 8, Chosen: make([]bool, len(tt.n.Devices))}
		for _, i := range tt.chosen {
			s.Chosen[i] = true
		}
		if got := tt.n.Entities(&s); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A lost board keeps its names while no other board moves.
func TestRemember(t *testing.T) {
	before := func() Inventory { return flatten([]board{named(0, uuid0, "10"), named(1, uuid1, "20")}) }
	for name, tt := range map[string]struct {
		change func(*Inventory)
		want   string
	}{
		"the same boards":     {func(*Inventory) {}, uuid1},
		"it is not lost":      {func(n *Inventory) { n.Devices[1].Lost = false }, ""},
		"another in its turn": {func(n *Inventory) { n.Devices[0].UUID = "GPU-9" }, ""},
	} {
		old, n := before(), flatten([]board{named(0, uuid0, "10"), newBoard(1)})
		n.Devices[1].Inactive, n.Devices[1].Lost = true, true
		tt.change(&n)
		n.Remember(&old)
		if d := n.Devices[1]; d.UUID != tt.want || (d.PCIBusID == "20") != (tt.want != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A Chooser sees all devices; without one, all are chosen.
func TestChoose(t *testing.T) {
	n := inventory(nil)
	all, err := n.Choose(nil)
	if want := (canonical.Selection{All: true, Chosen: []bool{true, true, true, true}}); err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%v: %+v", err, all)
	}
	var got []string
	_, _ = n.Choose(func(devices []canonical.Device) (s canonical.Selection, err error) {
		for _, d := range devices {
			got = append(got, d.UUID+" "+d.Instance)
		}
		return s, err
	})
	if want := []string{uuid0 + " ", uuid1 + " ", uuid1 + " 2", uuid1 + " 9"}; !slices.Equal(got, want) {
		t.Errorf("the chooser sees %q, want %q", got, want)
	}
}

// TestMIGPlaces: the places of compute instances, even if only the board is known.
func TestMIGPlaces(t *testing.T) {
	board, other, plain := NewBoard(0, "0", mig(3, mig2, "1g.10gb")), NewBoard(1, "1", mig(0, mig0, "7g.80gb")), NewBoard(2, "")
	board.UUID, plain.UUID = uuid0, uuid1
	var n Inventory
	n.Add(board, NewInstance(0, "2", "3g.40gb", mig(0, mig0, "3g.40gb"), mig(1, mig1, "3g.40gb"), mig(2, "", "3g.40gb")))
	n.Add(other) // has no UUID
	n.Add(plain) // has no names for CUDA programs
	want := []MIGPlace{
		{UUID: mig2, Board: uuid0, Profile: "1g.10gb"},
		{UUID: mig0, Board: uuid0, Instance: "2", Profile: "3g.40gb"},
		{UUID: mig1, Board: uuid0, Instance: "2", Profile: "3g.40gb"},
	}
	if got := n.MIGPlaces(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

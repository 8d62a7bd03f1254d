package dcgm

import "testing"

func TestParse(t *testing.T) {
	discovery := []byte("2 GPUs found.\n" + heading + board0 + rule + board1 + rule)
	query := []byte("" +
		"0, " + uuid1 + ", 00000000:20:00.0, 580.105.08, NVIDIA H100 80GB HBM3\n")
	list := []byte("GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid1 + ")\n")
	n := Parse(&Outputs{Discovery: discovery, Query: query, List: list})
	if len(n.Boards) != 2 {
		t.Fatalf("%d boards", len(n.Boards))
	}
	// nvidia-smi was run in a cgroup that holds the second board only.
	hidden, seen := n.Boards[0], n.Boards[1]
	if hidden.Index != Unknown || hidden.Driver != "" || hidden.UUID != uuid0 {
		t.Errorf("%+v", hidden)
	}
	if seen.Index != 0 || seen.Entity != 1 || seen.Driver != "580.105.08" {
		t.Errorf("%+v", seen)
	}
}

// What is known of instances depends on which of the commands told.
func TestInstances(t *testing.T) {
	mixed := "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n" +
		"  MIG 1c.3g.40gb  Device  0: (UUID: " + mig0 + ")\n" +
		"  MIG 1c.3g.40gb  Device  1: (UUID: " + mig1 + ")\n" +
		"  MIG 1g.10gb     Device  2: (UUID: " + mig2 + ")\n"
	alike := "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid0 + ")\n" +
		"  MIG 3g.40gb  Device  0: (UUID: " + mig0 + ")\n" +
		"  MIG 3g.40gb  Device  1: (UUID: " + mig1 + ")\n"
	old := "GPU 0: A100-SXM4-40GB (UUID: " + uuid0 + ")\n" +
		"  MIG 1g.5gb Device 0: (UUID: MIG-" + uuid0 + "/9/0)\n" +
		"  MIG 3g.20gb Device 1: (UUID: MIG-" + uuid0 + "/2/0)\n"
	a, b := Instance{Entity: 0, ID: 2, Computes: 2}, Instance{Entity: 1, ID: 9, Computes: 1}
	with := func(i Instance, profile string, devices ...MIGDevice) Instance {
		i.Profile, i.Devices = profile, devices
		return i
	}
	tests := []struct {
		name, list, report string
		want               []Instance
		loose              int
	}{
		{"no nvidia-smi", "", "", []Instance{a, b}, 0},
		{"devices that differ, and no report", mixed, "", []Instance{a, b}, 3},
		{"devices alike, and no report", alike, "", []Instance{with(a, "3g.40gb"), with(b, "3g.40gb")}, 2},
		{"a report", mixed, report, []Instance{
			with(a, "3g.40gb", MIGDevice{0, mig0, "3g.40gb"}, MIGDevice{1, mig1, "3g.40gb"}),
			with(b, "1g.10gb", MIGDevice{2, mig2, "1g.10gb"}),
		}, 0},
		{"UUIDs that tell", old, "", []Instance{
			with(a, "3g.20gb", MIGDevice{1, "MIG-" + uuid0 + "/2/0", "3g.20gb"}),
			with(b, "1g.5gb", MIGDevice{0, "MIG-" + uuid0 + "/9/0", "1g.5gb"}),
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &Outputs{Hierarchy: []byte(hierarchy), List: []byte(tt.list), Report: []byte(tt.report)}
			n := Parse(o)
			same(t, n.Boards[0].Instances, tt.want)
			if len(n.Boards[0].Loose) != tt.loose {
				t.Errorf("%d loose devices, want %d", len(n.Boards[0].Loose), tt.loose)
			}
			// The other board has an instance without a compute instance, of
			// which nothing tells the profile.
			same(t, n.Boards[1].Instances, []Instance{{Entity: 7, ID: 5}})
			if o.HasMIG() != (tt.list != "") {
				t.Errorf("HasMIG is %v", o.HasMIG())
			}
		})
	}
}

// nvidia-smi lists no device of an instance without a compute instance, so that
// nothing tells its profile.
func TestAnInstanceWithoutDevices(t *testing.T) {
	n := Parse(&Outputs{
		Hierarchy: []byte("| GPU 0 | GPU " + uuid0 + " (EntityID: 0) |\n| -> I 0/1 | GPU Instance (EntityID: 0) |\n" +
			"|    -> CI 0/1/0 | Compute Instance (EntityID: 0) |\n| -> I 0/2 | GPU Instance (EntityID: 1) |\n"),
		List: []byte("GPU 0: H100 (UUID: " + uuid0 + ")\n  MIG 3g.40gb Device 0: (UUID: " + mig0 + ")\n"),
	})
	same(t, n.Boards[0].Instances, []Instance{{Entity: 0, ID: 1, Computes: 1, Profile: "3g.40gb"}, {Entity: 1, ID: 2}})
}

func TestBoardsOfBothTables(t *testing.T) {
	n := Parse(&Outputs{Discovery: []byte(heading + board1), Hierarchy: []byte(hierarchy)})
	if len(n.Boards) != 2 || n.Boards[0].UUID != uuid0 || n.Boards[1].Model != "NVIDIA H100 80GB HBM3" ||
		len(n.Boards[0].Instances) != 2 || len(n.Boards[1].Instances) != 1 {
		t.Errorf("%+v", n)
	}
	// Between two calls board 0 was exchanged: its instances are not these.
	other := Parse(&Outputs{Discovery: []byte(heading + "| 0 | Device UUID: " + uuid1 + " |\n"), Hierarchy: []byte(hierarchy)})
	if len(other.Boards[0].Instances) != 0 {
		t.Errorf("%+v", other)
	}
	if b, i := n.FindInstance(7); i == nil || b.Entity != 1 || i.ID != 5 {
		t.Errorf("instance 7 is %+v of %+v", i, b)
	}
	if b, i := n.FindInstance(8); b != nil || i != nil {
		t.Error("there is no instance 8")
	}
}

func TestANameThatWasTooWide(t *testing.T) {
	o := &Outputs{
		Discovery: []byte(heading + "| 0 | Name: NVIDIA RTX PRO 6000 Bl... |\n| | Device UUID: " + uuid0 + " |\n"),
		Query:     []byte("0, " + uuid0 + ",,, NVIDIA RTX PRO 6000 Blackwell Server Edition\n"),
	}
	if n := Parse(o); n.Boards[0].Model != "NVIDIA RTX PRO 6000 Blackwell Server Edition" {
		t.Errorf("%+v", n)
	}
}

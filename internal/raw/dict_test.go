package raw

import (
	"fmt"
	"strings"
	"testing"
)

func TestDictCompact(t *testing.T) {
	d := NewDict()
	for _, name := range []string{"a", "b", "c"} {
		d.Family(d.FamilyID([]byte(name))).Help = "help of " + name
		d.BlockID([]byte("{x=\"" + name + "\"}"))
	}
	d.Compact(func(id uint32) bool { return id != 0 }, func(id uint32) bool { return id == 2 })
	if d.Generation() != 1 || d.Families() != 2 || d.Blocks() != 1 {
		t.Fatalf("generation %d, %d families, %d blocks; want 1, 2, 1", d.Generation(), d.Families(), d.Blocks())
	}
	if f := d.Family(0); *f != (Family{Name: "b", Help: "help of b"}) || d.Block(0) != `{x="c"}` {
		t.Errorf("got %v and %s", *f, d.Block(0))
	}
	if b, c, a := d.FamilyID([]byte("b")), d.FamilyID([]byte("c")), d.FamilyID([]byte("a")); b != 0 || c != 1 || a != 2 {
		t.Errorf("ids of b, c, a: %d, %d, %d; want 0, 1, 2", b, c, a)
	}
	if id := d.BlockID([]byte(`{x="a"}`)); id != 1 {
		t.Errorf("a dropped block came back as %d, want 1", id)
	}
}

// churn returns a body with steady series and others that occur only in that scan.
func churn(scan, pods int) []byte {
	var b strings.Builder
	b.WriteString("# HELP util Steady.\n")
	for gpu := range 8 {
		fmt.Fprintf(&b, "util{gpu=\"%d\"} %d\n", gpu, gpu)
	}
	for pod := range pods {
		fmt.Fprintf(&b, "util{pod=\"%d-%d\"} 1\nkpulse_%d_%d 1\npod_%d_%d 2\n", scan, pod, scan, pod, scan, pod)
	}
	return []byte(b.String())
}

func TestScanBoundsDict(t *testing.T) {
	const pods = 600
	var s Scanner
	b := Batch{Dict: NewDict()}
	for scan := range 30 {
		b.Body = churn(scan, pods)
		s.Scan(&b)
		compactSamples(t, &b, pods)
		// Three times what a scan uses, and 1024.
		if limit := 3*(8+pods) + 1024 + 1; b.Dict.Blocks() > limit || b.Dict.Families() > limit {
			t.Fatalf("scan %d: %d blocks, %d families", scan, b.Dict.Blocks(), b.Dict.Families())
		}
	}
	if g := b.Dict.Generation(); g < 5 || g > 15 {
		t.Errorf("%d compactions in 30 scans", g)
	}

	// Once the churn ends, ids stay the same, even if an upstream in trouble serves
	// nothing once.
	steady := churn(0, 2*pods)
	var rest uint64
	for i, body := range [][]byte{steady, steady, steady, nil, steady, steady, steady} {
		b.Body = body
		if s.Scan(&b); i == 2 {
			rest = b.Dict.Generation()
		}
	}
	if b.Dict.Generation() != rest {
		t.Errorf("a steady source is compacted: generation %d, was %d", b.Dict.Generation(), rest)
	}
}

// compactSamples checks that ids resolve to what is in the body.
func compactSamples(t *testing.T, b *Batch, pods int) {
	t.Helper()
	if len(b.Samples) != 8+2*pods || b.Skipped != 0 || b.OwnFamilies != pods {
		t.Fatalf("%d samples, skipped %d, own %d", len(b.Samples), b.Skipped, b.OwnFamilies)
	}
	for gpu, s := range b.Samples[:8] {
		want := fmt.Sprintf("{gpu=\"%d\"}", gpu)
		if f := b.Dict.Family(s.Family); f.Name != "util" || f.Help != "Steady." || b.Dict.Block(s.Labels) != want {
			t.Fatalf("sample %d is of %v %s", gpu, *f, b.Dict.Block(s.Labels))
		}
	}
}

// TestCompactedScanHasHelp compacts, and each scan has its own HELP or none.
func TestCompactedScanHasHelp(t *testing.T) {
	var s Scanner
	b := Batch{Dict: NewDict()}
	for scan := range 10 {
		b.Body = churn(scan, 600)
		s.Scan(&b)
	}
	before := b.Dict.Generation()
	for scan := range 6 {
		b.Body = churn(10+scan, 900)
		want := "Steady."
		if scan%2 == 1 {
			b.Body, want = []byte(strings.TrimPrefix(string(b.Body), "# HELP util Steady.\n")), ""
		}
		s.Scan(&b)
		if f := b.Dict.Family(b.Samples[0].Family); f.Help != want {
			t.Errorf("generation %d: the help of %s is %q, want %q", b.Dict.Generation(), f.Name, f.Help, want)
		}
	}
	if b.Dict.Generation() == before {
		t.Error("nothing was compacted")
	}
}

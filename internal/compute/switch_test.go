package compute

import (
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestAlternatingNodes: of a source that reads two nodes in turn, however unevenly, no board is lost; of one of them that fails, it is.
func TestAlternatingNodes(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	read := func(j *Judge, uuids ...string) []canonical.Absence {
		at = at.Add(30 * time.Second)
		var devices []canonical.Device
		for i, uuid := range uuids {
			devices = append(devices, canonical.Device{Hostname: "n", GPU: strconv.Itoa(i), UUID: uuid})
		}
		f, l := frame(topology(devices...), at), canonical.Ledger{}
		j.Account(&l, f, j.Judge(f, nil), 0)
		return l.Absences
	}
	gone := func(absences []canonical.Absence) (n int) {
		for _, a := range absences {
			if a.Gone {
				n++
			}
		}
		return n
	}
	j := newJudge(t, nil)
	for _, node := range "aabbbbbbabababbbbbba" {
		if n := gone(read(j, string(node)+"0", string(node)+"1")); n > 0 {
			t.Fatalf("%d boards are gone", n)
		}
	}
	if !j.Alternates() {
		t.Error("the source does not alternate")
	}
	j = newJudge(t, nil)
	read(j, "a0", "a1")
	var last []canonical.Absence
	for range 5 {
		last = read(j, "a0")
	}
	if gone(last) != 1 || j.Alternates() {
		t.Errorf("of a board that fails: %+v, alternates %v", last, j.Alternates())
	}
}

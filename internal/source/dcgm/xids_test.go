package dcgm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// ofFour reports a code 48 of board 0, which it reads; none of board 1, which it also reads; 79
// of board 2, which is lost; and 13 of board 3, which was not requested.
type ofFour struct{ losing }

func (ofFour) IsLost(board int) bool { return board == 2 }

func (ofFour) XIDs(dst []raw.XID, board int) []raw.XID {
	code := [...]uint32{48, 0, 79, 13}[board]
	x := raw.XID{Code: code}
	if code != 0 {
		x.Count, x.Last = uint64(code)*1000, noon
	}
	return append(dst, x)
}

// XIDs are reported for the boards that are read and for those that are lost, in the exporter's
// text.
func TestWriteXIDs(t *testing.T) {
	w := writer("", flatten([]board{named(0, uuid0, "10"), named(1, uuid1, "20"), named(2, "GPU-2", "30"), named(3, "GPU-3", "40")}), Jobs{"0": {"4711", "4712"}})
	from := ofFour{losing{read("#Entity POWER\nGPU 0 1.0\nGPU 1 1.0\n")}}
	from.w = w
	var b raw.Batch
	var text []byte
	readings := Readings(from)
	tick := func() {
		b.Reset()
		w.Write(&b, noon, readings)
		text = b.AppendText(text[:0])
	}
	tick()
	var got []string
	for _, x := range b.XIDs {
		block, _, _ := strings.Cut(b.Dict.Block(x.Labels), ",UUID")
		got = append(got, fmt.Sprint(block, " ", x.Code, " ", x.Count, " ", x.Last.Equal(noon)))
	}
	const want = `{gpu="0" 48 48000 true; {gpu="1" 0 0 false; {gpu="2" 79 79000 true`
	if strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
	const exposition = `# HELP DCGM_EXP_XID_ERRORS_TOTAL Times that each XID error occurred.
# TYPE DCGM_EXP_XID_ERRORS_TOTAL counter
DCGM_EXP_XID_ERRORS_TOTAL{gpu="0",UUID="` + uuid0 + `",pci_bus_id="10",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",xid="48"} 48000
DCGM_EXP_XID_ERRORS_TOTAL{gpu="2",UUID="GPU-2",pci_bus_id="30",device="nvidia2",modelName="NVIDIA H100 80GB HBM3",xid="79"} 79000
`
	if !strings.HasSuffix(string(text), exposition) {
		t.Errorf("serves\n%s\nwant at its end\n%s", text, exposition)
	}
	if n := testing.AllocsPerRun(100, tick); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// If no board is read, no XID is reported.
func TestWriteXIDsOfNothing(t *testing.T) {
	w := writer("", flatten([]board{named(2, "GPU-2", "30")}), Jobs{})
	from := ofFour{losing{read("#Entity POWER\n")}}
	from.w = w
	var b raw.Batch
	w.Write(&b, time.Time{}, from)
	if len(b.XIDs) != 0 || len(b.AppendText(nil)) != 0 {
		t.Errorf("%+v\n%s", b.XIDs, b.AppendText(nil))
	}
}

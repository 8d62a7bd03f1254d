package expose

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// extra is two families with a series for every device of a source.
type extra struct {
	source  string
	devices int
	begun   [2]bool
}

func (e extra) Len() int              { return len(e.begun) }
func (e extra) Begun(family int) bool { return e.begun[family] }

func (e extra) AppendFamily(dst []byte, family int, header bool, shown func(int) bool) []byte {
	for d := range e.devices {
		if !shown(d) {
			continue
		}
		if header {
			dst, header = fmt.Appendf(dst, "# TYPE f%d gauge\n", family), false
		}
		dst = fmt.Appendf(dst, "f%d{source=%q,device=\"%d\"} 1\n", family, e.source, d)
	}
	return dst
}

// Further families of several sources share one header, which is left out if an upstream that
// is passed through has it. A device in two sources is there once.
func TestFurtherFamilies(t *testing.T) {
	first, second := fleet(2), fleet(3) // begins with the same devices
	first.Further, second.Further = extra{"a", 2, [2]bool{true, false}}, extra{"b", 3, [2]bool{}}
	both := []outcome{good(first), {source: &canonical.Source{}}, good(second)}
	for _, test := range []struct {
		passed bool
		want   []string
	}{
		{true, []string{`f0{source="a",device="0"} 1`, `f0{source="a",device="1"} 1`, `f0{source="b",device="2"} 1`,
			`# TYPE f1 gauge`, `f1{source="a",device="0"} 1`, `f1{source="a",device="1"} 1`, `f1{source="b",device="2"} 1`}},
		{false, []string{`# TYPE f0 gauge`, `f0{source="a",device="0"} 1`, `f0{source="a",device="1"} 1`, `f0{source="b",device="2"} 1`,
			`# TYPE f1 gauge`, `f1{source="a",device="0"} 1`, `f1{source="a",device="1"} 1`, `f1{source="b",device="2"} 1`}},
	} {
		var out bytes.Buffer
		o := output{buffer: buffer{w: &out}}
		o.writeFurther(&atomic.Pointer[layout]{}, both, test.passed)
		o.flush()
		if want := strings.Join(test.want, "\n") + "\n"; out.String() != want {
			t.Errorf("passed through %v:\n%swant\n%s", test.passed, out.String(), want)
		}
	}
}

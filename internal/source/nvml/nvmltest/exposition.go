package nvmltest

import (
	"bytes"
	"fmt"
	"strconv"
)

// Exposition returns what dcgm-exporter 4.8 would serve for truths on a node with
// that hostname and DefaultDriver, with the families of its default counters and all
// others that we read. The exporter shows a board with instances only by their rows,
// which repeat the board's readings.
func Exposition(hostname string, truths []Truth) []byte {
	var b bytes.Buffer
	for _, q := range quantities {
		headed := false
		for _, t := range truths {
			for _, r := range t.rows() {
				v, given := r.value(q)
				if !given {
					continue
				}
				if !headed {
					_, _ = fmt.Fprintf(&b, "# HELP %s As a board has it.\n# TYPE %s %s\n", q.family, q.family, q.kind)
					headed = true
				}
				_, _ = fmt.Fprintf(&b, "%s{%s,hostname=\"%s\",DCGM_FI_DRIVER_VERSION=\"%s\"} %s\n",
					q.family, r.labels, hostname, DefaultDriver, q.text(v))
			}
		}
	}
	return b.Bytes()
}

// row is an entity in the exporter's terms.
type row struct {
	labels          string
	board, instance Readings // instance is nil for a board
}

func (t Truth) rows() []row {
	labels := fmt.Sprintf(`gpu="%d",UUID="%s",pci_bus_id="%s",device="nvidia%d",modelName="%s"`, t.Index, t.UUID, t.BusID, t.Index, t.Name)
	all := t.Readings.complete()
	if len(t.Instances) == 0 {
		return []row{{labels: labels, board: all}}
	}
	rows := make([]row, len(t.Instances))
	for i, in := range t.Instances {
		rows[i] = row{
			labels:   fmt.Sprintf(`%s,GPU_I_PROFILE="%s",GPU_I_ID="%d"`, labels, in.Profile, in.ID),
			board:    all,
			instance: in.Readings.complete(),
		}
	}
	return rows
}

// value returns the physical number of q in r.
func (r row) value(q quantity) (float64, bool) {
	from := r.board
	switch {
	case r.instance == nil:
	case q.level == whole:
		return 0, false
	case q.level == instance:
		from = r.instance
	}
	v, given := from[q.Quantity]
	return v, given
}

// text returns a physical number in the exporter's unit and form. It truncates
// integers, after rounding to 15 digits, which removes the rounding error of the
// unit conversion.
func (q quantity) text(v float64) string {
	if q.float {
		return strconv.FormatFloat(v*q.scale, 'f', 6, 64)
	}
	exact, _ := strconv.ParseFloat(number(v*q.scale), 64)
	return strconv.FormatInt(int64(exact), 10)
}

package nvmltest

import (
	"bytes"
	"fmt"
	"strconv"
)

// Exposition returns what dcgm-exporter 4.8 would serve of truths, with the families
// of its default counters and of all others that we read, where the node has that
// hostname and DefaultDriver. The exporter shows a board that is cut by the rows of
// its instances only: what is the board's is repeated on each.
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

// row is an entity of the exporter's.
type row struct {
	labels          string
	board, instance Readings // the latter of an instance only
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

// value returns the physical number of q on r.
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

// text writes a physical number in the exporter's unit and form. Integers are cut,
// after what a change of unit adds beyond 15 digits is gone.
func (q quantity) text(v float64) string {
	if q.float {
		return strconv.FormatFloat(v*q.scale, 'f', 6, 64)
	}
	exact, _ := strconv.ParseFloat(number(v*q.scale), 64)
	return strconv.FormatInt(int64(exact), 10)
}

package expose

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// historyEvery is how often the landing page's history gets a point, and historyPoints how many it
	// keeps: ten minutes.
	historyEvery  = 15 * time.Second
	historyPoints = 40
)

// history is the utilization of each device over the last minutes, for the landing page. Scrapes of
// /metrics and views of the page add to it.
type history struct {
	sources *Set
	latest  atomic.Int64 // the number of the latest point, counted in historyEvery since 1970

	mu      sync.Mutex
	devices map[historyKey]*points
}

// historyKey identifies a device.
type historyKey struct{ hostname, gpu, uuid, instance string }

func historyOf(d *canonical.Device) historyKey {
	return historyKey{d.Hostname, d.GPU, d.UUID, d.Instance}
}

// points are values by their number modulo historyPoints, and the numbers that they are of.
type points struct {
	values  [historyPoints]float64
	numbers [historyPoints]int64
}

// after serves next, and adds a point if the latest is old enough.
func (h *history) after(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		h.add()
	})
}

// add adds a point for each device of the last good readings, if the latest is old enough: its real
// utilization or, without one, GPU-Util.
func (h *history) add() {
	number, latest := time.Now().UnixNano()/int64(historyEvery), h.latest.Load()
	if number <= latest || !h.latest.CompareAndSwap(latest, number) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, p := range h.devices {
		if p.line(number) == "" {
			delete(h.devices, key)
		}
	}
	for _, f := range h.sources.now() {
		if g, able := f.(glancer); able {
			g.Glance(func(s *canonical.Snapshot) { h.addReading(number, s) })
		}
	}
	if len(h.devices) == 0 {
		h.latest.Store(latest) // the first reading is still to come
	}
}

func (h *history) addReading(number int64, s *canonical.Snapshot) {
	if time.Since(s.Frame.At) > 2*historyEvery {
		return
	}
	for i := range min(s.Frame.Len(), len(s.Verdicts)) {
		v := s.Verdicts[i].RealUtilization
		if !canonical.Given(v) {
			v = s.Frame.Row(i)[canonical.NVMLUtilization]
		}
		key := historyOf(&s.Frame.Topology.Devices[i])
		if h.devices[key] == nil {
			h.devices[key] = &points{}
		}
		p := h.devices[key]
		p.values[number%historyPoints], p.numbers[number%historyPoints] = v, number
	}
}

// line returns the path of a device's line in an SVG of historyPoints by 10, "" if it has no point.
func (h *history) line(d *canonical.Device) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.devices[historyOf(d)]; p != nil {
		return p.line(h.latest.Load())
	}
	return ""
}

// line draws the points up to a number, with gaps where there are none.
func (p *points) line(latest int64) string {
	var path []byte
	drawn := false
	for x := range int64(historyPoints) {
		number := latest - historyPoints + 1 + x
		at := (number%historyPoints + historyPoints) % historyPoints
		v := p.values[at]
		if p.numbers[at] != number || math.IsNaN(v) {
			drawn = false
			continue
		}
		path = append(path, map[bool]byte{false: 'M', true: 'L'}[drawn])
		path = strconv.AppendInt(path, x, 10)
		path = strconv.AppendFloat(append(path, ' '), 10*(1-v), 'f', 1, 64)
		if !drawn {
			path = append(path, "h.5"...) // so that a point alone is seen
		}
		drawn = true
	}
	return string(path)
}

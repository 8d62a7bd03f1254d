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
	var read []point // collected first: Glance holds a lock of its own
	for _, f := range h.sources.now() {
		if g, able := f.(glancer); able {
			g.Glance(func(s *canonical.Snapshot) { read = appendPoints(read, s) })
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, p := range h.devices {
		if p.line(number) == "" {
			delete(h.devices, key)
		}
	}
	for _, r := range read {
		if h.devices[r.key] == nil {
			h.devices[r.key] = &points{}
		}
		p := h.devices[r.key]
		p.values[number%historyPoints], p.numbers[number%historyPoints] = r.value, number
	}
	if len(h.devices) == 0 {
		h.latest.Store(latest) // the first reading is still to come
	}
}

// point is a value of a device.
type point struct {
	key   historyKey
	value float64
}

// appendPoints appends the utilization of the devices of a reading, unless it is old.
func appendPoints(dst []point, s *canonical.Snapshot) []point {
	if time.Since(s.Frame.At) > 2*historyEvery {
		return dst
	}
	for i := range min(s.Frame.Len(), len(s.Verdicts)) {
		v := s.Verdicts[i].RealUtilization
		if !canonical.Given(v) {
			v = s.Frame.Row(i)[canonical.NVMLUtilization]
		}
		dst = append(dst, point{historyOf(&s.Frame.Topology.Devices[i]), v})
	}
	return dst
}

// line returns the path of a device's line in an SVG of historyPoints by 10, "" if it has no point.
func (h *history) line(key historyKey) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.devices[key]; p != nil {
		return p.line(h.latest.Load())
	}
	return ""
}

// line draws the points up to a number. Points at most two minutes apart are joined: scrapes may be as rare.
func (p *points) line(latest int64) string {
	const joined = int64(2 * time.Minute / historyEvery)
	var path []byte
	last := -joined - 1
	for x := range int64(historyPoints) {
		number := latest - historyPoints + 1 + x
		at := (number%historyPoints + historyPoints) % historyPoints
		v := p.values[at]
		if p.numbers[at] != number || math.IsNaN(v) {
			continue
		}
		alone := x-last > joined
		path = append(path, map[bool]byte{true: 'M', false: 'L'}[alone])
		path = strconv.AppendInt(path, x, 10)
		path = strconv.AppendFloat(append(path, ' '), 10*(1-v), 'f', 1, 64)
		if last = x; alone {
			path = append(path, "h.5"...) // so that a point alone is seen
		}
	}
	return string(path)
}

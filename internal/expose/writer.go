package expose

import (
	"io"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Writer renders the series of ours without a server around it. It belongs to
// one goroutine and allocates nothing while devices and allocations stay the same.
type Writer struct {
	renderer  *renderer
	rendering rendering
	readings  []reading
}

// NewWriter returns a Writer.
func NewWriter() *Writer { return &Writer{renderer: newRenderer(1)} }

// Write writes all series of snapshots, one of each source in an order that
// stays the same, to out in large pieces. The snapshots are not kept.
// The error is that of out.
func (w *Writer) Write(out io.Writer, snapshots ...*canonical.Snapshot) error {
	w.rendering.reset(out)
	w.readings = w.readings[:0]
	for _, s := range snapshots {
		w.readings = append(w.readings, reading{snapshot: s, source: &s.Source})
	}
	w.renderer.write(&w.rendering, 0, w.readings)
	w.rendering.flush()
	clear(w.readings)
	err := w.rendering.err
	w.rendering.reset(nil)
	return err
}

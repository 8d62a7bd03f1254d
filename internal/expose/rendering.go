package expose

import "slices"

// rendering is an exposition in the making: the sink that it goes into, and memory
// for what is worked out on the way. All of it serves for the next exposition too.
type rendering struct {
	sink
	// values are those of one row, or source, in a family.
	values []float64
	// sources are the labels of each reading's source.
	sources texts
}

// room returns room for n values, which hold anything until they are filled.
func (r *rendering) room(n int) []float64 {
	r.values = slices.Grow(r.values[:0], n)[:n]
	return r.values
}

// nameSources renders the labels of the sources of readings.
func (r *rendering) nameSources(readings []reading) {
	r.sources.reset()
	for i := range readings {
		r.sources.bytes = appendSource(r.sources.bytes, readings[i].source)
		r.sources.end()
	}
}

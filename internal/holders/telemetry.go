package holders

// result is the result of a look-up.
type result int

const (
	wasFound result = iota
	wasAbsent
	wasDenied
	hasFailed
	wasDropped
	results
)

// resultWords are the names of the results in telemetry.
var resultWords = [results]string{"found", "absent", "denied", "failed", "dropped"}

// Results returns the words for the indexes of Counts.Lookups.
func Results() []string { return resultWords[:] }

// Counts are the counts of a Resolver.
type Counts struct {
	// Lookups counts the look-ups that ended, by Results: found; absent, if there is no
	// such pod; denied by the API server; failed, if it did not answer; dropped, if too
	// many waited.
	Lookups [results]uint64
	// InFlight and Queued count look-ups, Pods the remembered pods.
	InFlight, Queued, Pods int
}

// Counts returns the current counts.
func (r *Resolver) Counts() Counts {
	var c Counts
	for i := range c.Lookups {
		c.Lookups[i] = r.counts[i].Load()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.InFlight, c.Queued, c.Pods = int(r.inFlight.Load()), len(r.queue), r.pods.len()
	return c
}

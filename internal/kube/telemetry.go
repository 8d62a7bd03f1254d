package kube

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

// Results are the words by which Counts.Lookups are indexed.
func Results() []string { return resultWords[:] }

// Counts are the counts of a Resolver.
type Counts struct {
	// Lookups are those that ended, by Results: found; absent, there being no such pod;
	// denied by the API server; failed, as it did not answer; dropped, because too many
	// waited.
	Lookups [results]uint64
	// InFlight and Queued are look-ups, Pods those that are remembered.
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

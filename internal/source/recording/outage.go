package recording

import "time"

const (
	// firstPause and longestPause limit the pause between a failed write and the
	// next try: each pause is twice the previous one.
	firstPause   = time.Second
	longestPause = time.Minute
)

// lookEvery is how often to check that the file is still at its path.
const lookEvery = time.Second

// State is the state of a recording.
type State struct {
	File string
	// Failure is why nothing can be written at present, "" if it can; Remedy is what
	// to do.
	Failure, Remedy string
	// Failures counts the failed writes, Missed the readings that were not written.
	Failures, Missed int
}

// State returns the state of the recording. It may be called from any goroutine.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.state
	state.File = r.file.path
	return state
}

// outage lasts from a failed write to the next successful one. The Recorder's lock
// guards it.
type outage struct {
	lost  bool          // a record was lost, and nothing was tried since
	anew  bool          // the next record begins a new file
	retry time.Time     // when to try the next record
	pause time.Duration // before the last try
}

// wait reports whether it is too early for another try.
func (o *outage) wait(now time.Time) bool { return o.lost && now.Before(o.retry) }

// begin reports whether the record at hand is a try.
func (o *outage) begin() bool {
	lost := o.lost
	o.lost = false
	return lost
}

// resume makes the next record follow the complete part of the file, and reports whether it
// begins a new file.
func (r *Recorder) resume() (nextFile bool) {
	if r.outage.anew || r.size == 0 {
		r.writer.nextFile()
		r.size = 0
		return true
	}
	r.writer.resume()
	return false
}

// lose counts a record that is not written because of err, or if err is nil because
// a record before it was lost.
func (r *Recorder) lose(c chunk, err error) {
	if begins := r.lost(c, err); begins {
		r.logger.Error("recording fails; reading continues, and writing is retried", "file", r.file.path, "source", r.Name(), "err", err, "remedy", "free space or repair the disk")
	}
}

// lost does the work of lose, and reports whether an outage begins. Logging is left to lose,
// because a blocked log must not hold mu.
func (r *Recorder) lost(c chunk, err error) (begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.miss(c.readings)
	// The readings that the record counts as missed were counted before.
	r.state.Missed -= max(c.readings-1, 0)
	o := &r.outage
	o.anew = o.anew || c.nextFile || !r.file.rotates
	if err == nil || r.ended.Load() {
		return false
	}
	begins = !r.losing
	r.losing, o.lost, r.size = true, true, r.file.whole
	o.pause = min(max(2*o.pause, firstPause), longestPause)
	o.retry = time.Now().Add(o.pause)
	r.state.Failures++
	r.state.Failure, r.state.Remedy = err.Error(), "free space or repair the disk; writing is retried"
	return begins
}

// lookForFile makes the next record begin a new file if this one was removed, renamed or
// cut.
func (r *Recorder) lookForFile() {
	now := time.Now()
	if now.Sub(r.looked) < lookEvery {
		return
	}
	if r.looked = now; !r.file.gone() {
		return
	}
	r.losing = true
	r.mu.Lock()
	r.outage.lost, r.outage.anew, r.outage.retry = true, true, now
	r.mu.Unlock()
	r.logger.Warn("the recording's file was removed, renamed or cut; recording continues in a new file", "file", r.file.path, "source", r.Name())
}

// recovered ends an outage.
func (r *Recorder) recovered() {
	r.mu.Lock()
	before := r.state
	r.outage.anew, r.outage.pause = false, 0
	r.state.Failure, r.state.Remedy = "", ""
	r.mu.Unlock()
	if before.Failure != "" {
		r.logger.Info("recording continues", "file", r.file.path, "source", r.Name(), "missed_in_all", before.Missed)
	}
}

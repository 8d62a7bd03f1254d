package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// jobRows is the most rows that a job takes, and jobFrom the height from which a list
// has room for them.
const jobRows, jobFrom = 3, 12

// drawJob writes the job that we were started in into the first rows of r, each of
// its variables as a whole, and returns how many rows that took. What has no room
// in so many is left out; a value longer than a row is cut.
func drawJob(r screen.Rect, job []canonical.Variable) int {
	if len(job) == 0 || r.Empty() {
		return 0
	}
	const title = "we run in"
	left := len(title) + 1
	r.Text(0, 0, left, title, styleFaint)
	x, y := left, 0
	for _, v := range job {
		need := screen.Width(v.Name) + 1 + screen.Width(v.Value)
		if x > left && x+need > r.W {
			x, y = left, y+1
		}
		if y >= min(r.H, jobRows) {
			return y
		}
		x = r.Text(x, y, r.W-x, v.Name, styleLabel) + 1
		x = r.Text(x, y, r.W-x, v.Value, stylePlain) + 2
	}
	return y + 1
}

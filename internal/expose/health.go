package expose

import (
	"net/http"
	"strings"
)

// healthy answers that the process lives, whatever becomes of the sources.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("OK\n"))
}

// ready answers 200 once a feed has a reading young enough to be served, else
// 503 with the reason of each feed on a line.
func ready(feeds []Feed) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var reasons []string
		for _, f := range feeds {
			_, err := f.Status()
			if err == nil {
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				w.Write([]byte("ready\n"))
				return
			}
			reasons = append(reasons, reason(f, err))
		}
		http.Error(w, strings.Join(reasons, "\n"), http.StatusServiceUnavailable)
	}
}

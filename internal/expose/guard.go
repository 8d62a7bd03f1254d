package expose

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// guard sets the Server header in each answer of handler, keeps browsers from guessing content
// types, and refuses state-changing requests from pages of other sites. Programs name no site
// and are let through.
func guard(handler http.Handler) http.Handler {
	own := http.NewCrossOriginProtection()
	own.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, "a page of another site sent this request; send it from here, or with curl", http.StatusForbidden)
	}))
	handler = own.Handler(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Server", ServerName)
		h.Set("X-Content-Type-Options", "nosniff")
		handler.ServeHTTP(w, r)
	})
}

// guardPage keeps browsers from running scripts in a page, loading anything for it, sending
// forms from it, framing it in another page, and telling other sites its address.
func guardPage(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "deny")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// Patterns returns the patterns of all paths, including those that need a flag, each a method
// and a path in the form of http.ServeMux.
func Patterns() []string {
	opts := &Options{
		Sources: NewSet(), Absent: func() *canonical.Failure { return nil },
		MaxRequests: 1, Timeout: time.Second, Operations: Operations{EnablePprof: true},
	}
	return slices.Sorted(maps.Keys(routes(opts, newMetrics(opts), &landing{}, newAdmission(opts))))
}

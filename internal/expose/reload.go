package expose

import (
	"fmt"
	"net/http"
)

// reloadPath is where a POST has config and rules read again.
const reloadPath = "/-/reload"

// reload answers reloadPath with what run says; nil is not allowed to.
func reload(run func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case run == nil:
			http.Error(w, "reloading over HTTP is off; start with --web.enable-lifecycle, or send SIGHUP", http.StatusForbidden)
		case r.Method != http.MethodPost && r.Method != http.MethodPut:
			w.Header().Set("Allow", "POST, PUT")
			http.Error(w, r.Method+" does not reload; use POST", http.StatusMethodNotAllowed)
		default:
			if err := run(); err != nil {
				http.Error(w, "nothing was reloaded: "+err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintln(w, "reloaded")
		}
	})
}

package expose

import (
	"net"
	"net/http"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// targetGroup is one element of what HTTP service discovery answers.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery answers /sd for Prometheus' http_sd_configs: each source is a target of
// its own, at the address of the request, whose scrapes read that source alone.
// Several, and those that come and go, differ in their instance, so that up is of each. The scheme is the job's,
// unless the request came by TLS. A request that names no host is told the address that
// it came to. If it is not certain that there is no source, it fails: Prometheus then
// keeps the targets that it has.
func discovery(set *Set, why func() *canonical.Failure) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sources := set.now()
		if absent(w, sources, why) {
			return
		}
		groups, target := make([]targetGroup, len(sources)), r.Host
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && target == "" {
			target = local.String()
		}
		if target == "" {
			answerError(w, "the request has no Host header, which names the target; send one", http.StatusBadRequest)
			return
		}
		for i, f := range sources {
			labels := map[string]string{"__metrics_path__": "/metrics", "__param_source": f.Name()}
			if why != nil || len(sources) > 1 {
				labels["instance"] = f.Name()
			}
			if r.TLS != nil {
				labels["__scheme__"] = "https"
			}
			groups[i] = targetGroup{[]string{target}, labels}
		}
		w.Header().Set("Cache-Control", "no-store") // a cache would hand one's Host to another
		answerJSON(w, groups)
	}
}

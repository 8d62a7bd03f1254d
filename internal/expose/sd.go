package expose

import (
	"net"
	"net/http"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// targetGroup is one element of the answer of HTTP service discovery.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery answers /sd for Prometheus' http_sd_configs: each source is a target of its own, at
// the address of the request, and its scrapes read only that source. If there are several, or
// they come and go, each has its name as instance: up then distinguishes them. The scheme is
// the job's, unless the request came by TLS. Without a Host, the target is the address that the
// request came to. If a failure may hide sources, discovery fails: Prometheus then keeps its
// targets.
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
		w.Header().Set("Cache-Control", "no-store") // a cache would give one client's Host to another
		answerJSON(w, groups)
	}
}

package expose

import "net/http"

// targetGroup is one element of what HTTP service discovery answers.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery answers /sd for Prometheus' http_sd_configs: each source is a target of
// its own, at the address of the request, whose scrapes read that source alone.
// Several differ in their instance, so that up is of each. The scheme is the job's,
// unless the request came by TLS.
func discovery(feeds []Feed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		groups := make([]targetGroup, len(feeds))
		for i, f := range feeds {
			labels := map[string]string{"__metrics_path__": "/metrics", "__param_source": f.Name()}
			if len(feeds) > 1 {
				labels["instance"] = f.Name()
			}
			if r.TLS != nil {
				labels["__scheme__"] = "https"
			}
			groups[i] = targetGroup{[]string{r.Host}, labels}
		}
		answerJSON(w, groups)
	}
}

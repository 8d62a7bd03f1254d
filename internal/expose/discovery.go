package expose

import "net/http"

// discoveryPath lists the sources for Prometheus' http_sd_configs.
const discoveryPath = "/sd"

// targetGroup is one element of what HTTP service discovery answers.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery answers discoveryPath: each source is a target of its own, at the
// address at which we were asked, whose scrapes read that source alone. Several are
// told apart by their instance: up is of each. The job says whether to come by TLS,
// unless we see that it is wanted.
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

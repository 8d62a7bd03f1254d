package e2e

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLandingPageShowsGPUs: each GPU has a row, without a class if only its instances were read; while the source is down, the page marks it as the
// last good reading. The exporter's labels are text.
func TestLandingPageShowsGPUs(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	body := `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="<i>H100</i>",namespace="ml",pod="<script>alert(1)</script>"} 93
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"} 301
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="0",UUID="GPU-1"} 700
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1"} 40960
DCGM_FI_DEV_FB_TOTAL{gpu="0",UUID="GPU-1"} 81920
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0",UUID="GPU-1"} 1
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-2",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"} 99
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-2",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"} 0.5
`
	up := startUpstream(func() ([]byte, error) {
		if down.Load() {
			return nil, errors.New("the exporter is ill")
		}
		return []byte(body), nil
	})
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--poll=1s", "--source.min-interval=0s")
	rows := []string{
		`<tr class="crit">`, "&lt;i&gt;H100&lt;/i&gt;", "93 %", "301 of 700 W", "40 of 80 GiB", `<span class="crit">crit</span> <small>row_remap_failure</small>`,
		`1</td>
<td class="figure" data-is="Real">–</td><td class="figure" data-is="GPU-Util">–</td><td></td><td data-is="Class">in MIG</td>`, // known from its instance alone
		`1:3 1g.10gb</td>
<td class="figure" data-is="Real">–</td><td class="figure" data-is="GPU-Util">–</td><td></td><td data-is="Class"><span title="An input that decides the class was not read`,
		`http-equiv="refresh"`, `<path d="M`, "ml/&lt;script&gt;", "<pre>DCGM_FI_PROF_SM_ACTIVE,gauge,",
	}
	wants := func(landing string) {
		t.Helper()
		for _, want := range rows {
			if !strings.Contains(landing, want) {
				t.Errorf("the page lacks %q:\n%s", want, landing)
			}
		}
		if strings.Contains(landing, "<script") || strings.Contains(landing, "<i>") {
			t.Errorf("the page takes labels for HTML:\n%s", landing)
		}
	}
	landing := awaitPage(t, c, "/", http.StatusOK, `(?s)● up.*<path d="M`) // the first point may come after the first reading
	if wants(landing); strings.Contains(landing, "Last good reading") || !strings.Contains(landing, "<title>1 GPU crit · 1 GPU unknown · kpulse-proxy</title>") ||
		!strings.Contains(landing, `<p class="counts"><span class="crit">1 GPU crit</span> <span class="unknown">1 GPU unknown</span> </p>`) {
		t.Errorf("the reading is old, or not counted:\n%s", landing)
	}
	down.Store(true)
	landing = awaitPage(t, c, "/", http.StatusOK, `(?s)● down.*Last good reading, [0-9hms]+ old`)
	if wants(landing); !strings.Contains(landing, `<span class="down">1 source down</span> <span class="unknown">2 GPUs unknown</span>`) {
		t.Errorf("what is not known now is counted as known:\n%s", landing)
	}
}

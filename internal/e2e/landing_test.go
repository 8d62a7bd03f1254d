package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLandingPageOfManyUnknownFamilies: the page names some and counts the others.
func TestLandingPageOfManyUnknownFamilies(t *testing.T) {
	t.Parallel()
	body := oneGPU
	for n := range 1050 {
		body += fmt.Sprintf("DCGM_FI_NEW_%04d{gpu=\"0\",UUID=\"GPU-1\"} 1\n", n)
	}
	up := startUpstream(func() ([]byte, error) { return []byte(body), nil })
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics")
	landing := awaitPage(t, c, "/", http.StatusOK, "</code> and 1000 more<br>")
	if n := strings.Count(landing, "<code>DCGM_FI_NEW_"); n != 50 {
		t.Errorf("%d families are named", n)
	}
}

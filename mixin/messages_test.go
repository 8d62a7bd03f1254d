package mixin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// posted is an alert as Prometheus posts it.
type posted struct {
	Labels   map[string]string `json:"labels"`
	StartsAt time.Time         `json:"startsAt"`
	EndsAt   time.Time         `json:"endsAt"`
}

// sentFor posts the alerts that fire at each minute to Alertmanager with the example configuration, and returns how many
// messages about firing alerts it sends for each cluster. Changes within the group_interval of five minutes are one step.
// Each step takes until all is sent that must be, however long that takes.
func sentFor(t *testing.T, firing func(minute int) []map[string]string) map[string]int {
	t.Helper()
	mail := startInbox(t)
	alertmanager := freeAddress(t)
	example, err := os.ReadFile("alertmanager.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := regexp.MustCompile(`(group_wait|group_interval): \w+`).ReplaceAllString(string(example), "$1: 1s")
	config = regexp.MustCompile(`(?m)^  - name: (\w+)$`).ReplaceAllString(config, "$0\n    webhook_configs: [{url: '"+mail.url+"/$1'}]")
	path := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, alertmanager, program(t, "prometheus-alertmanager", "alertmanager"), "--config.file="+path, "--storage.path="+dir, "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	api := "http://" + alertmanager + "/api/v2/alerts"
	began := map[string]posted{} // the alerts that fire
	for minute := 0; minute < minutes; minute += 5 {
		now := map[string]map[string]string{}
		for _, alert := range firing(minute) {
			now[fmt.Sprint(alert)] = alert
		}
		var changes []posted
		for key, alert := range now {
			if _, is := began[key]; !is {
				began[key] = posted{alert, time.Now(), time.Now().Add(24 * time.Hour)}
				changes = append(changes, began[key])
			}
		}
		for key, ended := range began {
			if now[key] == nil {
				ended.EndsAt = time.Now()
				changes = append(changes, ended)
				delete(began, key)
			}
		}
		if changes == nil {
			continue
		}
		body, err := json.Marshal(changes)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Post(api, "application/json", bytes.NewReader(body))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		res.Body.Close()
		mail.await(t, api, minute)
	}
	return mail.count()
}

// inbox receives Alertmanager's messages.
type inbox struct {
	url    string
	mu     sync.Mutex
	sent   map[string]int  // messages about firing alerts, by cluster
	firing map[string]bool // of each alert in a message, whether it fired in the last
}

func startInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{sent: map[string]int{}, firing: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct {
			Status      string
			GroupLabels map[string]string
			Alerts      []struct {
				Status string
				Labels map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if message.Status == "firing" {
			in.sent[message.GroupLabels["cluster"]]++
		}
		for _, a := range message.Alerts {
			in.firing[fmt.Sprint(a.Labels)] = a.Status == "firing"
		}
	}))
	t.Cleanup(server.Close)
	in.url = server.URL
	return in
}

// count returns the number of messages about firing alerts of each cluster.
func (in *inbox) count() map[string]int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return maps.Clone(in.sent)
}

// await waits until Alertmanager has sent every alert that fires and is not inhibited, and the end of those that do not
// fire any more.
func (in *inbox) await(t *testing.T, api string, minute int) {
	t.Helper()
	var differ []string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var alerts []struct {
			Labels map[string]string
			Status struct{ InhibitedBy []string }
		}
		if err := get(api, &alerts); err != nil {
			t.Fatal(err)
		}
		differ = nil
		fire := map[string]bool{}
		in.mu.Lock()
		for _, a := range alerts {
			key := fmt.Sprint(a.Labels)
			if fire[key] = true; len(a.Status.InhibitedBy) == 0 && !in.firing[key] {
				differ = append(differ, key)
			}
		}
		for key, is := range in.firing {
			if is && !fire[key] {
				differ = append(differ, key)
			}
		}
		in.mu.Unlock()
		if differ == nil {
			return
		}
	}
	t.Fatalf("minute %d: no message about %q", minute, differ)
}

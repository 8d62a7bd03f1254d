package mixin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		// Alertmanager takes alerts one by one. What inhibits others comes before them, and goes after them.
		waves := make([][]posted, 3)
		for key, ended := range began {
			if now[key] == nil {
				ended.EndsAt = time.Now()
				n := 0
				if inhibits(ended.Labels) {
					n = 1
				}
				waves[n] = append(waves[n], ended)
			}
		}
		for key, alert := range now {
			if _, is := began[key]; !is {
				n := 2
				if inhibits(alert) {
					n = 1
				}
				waves[n] = append(waves[n], posted{alert, time.Now(), time.Now().Add(24 * time.Hour)})
			}
		}
		if len(waves[1]) == 0 {
			waves = [][]posted{slices.Concat(waves...)}
		}
		mail.begin(minute)
		for _, changes := range waves {
			if len(changes) == 0 {
				continue
			}
			for _, alert := range changes {
				key := fmt.Sprint(alert.Labels)
				if delete(began, key); now[key] != nil {
					began[key] = alert
				}
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
			mail.await(t, api, minute, began)
		}
	}
	return mail.count()
}

// inhibits reports whether an alert is that of a symptom with others, which it inhibits.
func inhibits(alert map[string]string) bool {
	return slices.ContainsFunc(symptoms, func(s symptom) bool { return s.alert == alert["alertname"] && s.also != nil })
}

// inbox receives Alertmanager's messages.
type inbox struct {
	url    string
	mu     sync.Mutex
	minute int
	sent   map[message]bool // about firing alerts
	firing map[string]bool  // of each alert in a message, whether it fired in the last
}

// message is what Alertmanager sends of a group at a minute. With the intervals of the example, that is one: with those of
// the test, it may see the alerts that come at once in two parts on a busy machine.
type message struct {
	minute         int
	cluster, group string
}

func startInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{sent: map[message]bool{}, firing: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got struct {
			Status      string
			GroupKey    string
			GroupLabels map[string]string
			Alerts      []struct {
				Status string
				Labels map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if got.Status == "firing" {
			in.sent[message{in.minute, got.GroupLabels["cluster"], got.GroupKey}] = true
		}
		for _, a := range got.Alerts {
			in.firing[fmt.Sprint(a.Labels)] = a.Status == "firing"
		}
	}))
	t.Cleanup(server.Close)
	in.url = server.URL
	return in
}

// begin says that the messages that follow are of a minute.
func (in *inbox) begin(minute int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.minute = minute
}

// count returns the number of messages about firing alerts of each cluster.
func (in *inbox) count() map[string]int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := map[string]int{}
	for of := range in.sent {
		n[of.cluster]++
	}
	return n
}

// await waits until Alertmanager has grouped the alerts that fire and no others, and has sent each that is not inhibited, and
// the end of those that it had sent.
func (in *inbox) await(t *testing.T, api string, minute int, fire map[string]posted) {
	t.Helper()
	var differ []string
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var groups []struct {
			Alerts []struct {
				Labels map[string]string
				Status struct{ InhibitedBy []string }
			}
		}
		if err := get(api+"/groups", &groups); err != nil {
			t.Fatal(err)
		}
		differ = nil
		grouped := map[string]bool{}
		in.mu.Lock()
		for _, group := range groups {
			for _, a := range group.Alerts {
				key := fmt.Sprint(a.Labels)
				_, fires := fire[key]
				if grouped[key] = true; !fires || len(a.Status.InhibitedBy) == 0 && !in.firing[key] {
					differ = append(differ, key)
				}
			}
		}
		for key := range fire {
			if !grouped[key] {
				differ = append(differ, key)
			}
		}
		for key, is := range in.firing {
			if _, fires := fire[key]; is && !fires {
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

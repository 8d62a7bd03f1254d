package holders

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzDiscovery: whatever resources the API server lists, the name that is requested next is
// one segment of a path.
func FuzzDiscovery(f *testing.F) {
	api := newFakeAPI()
	operators(api)
	for _, document := range api.objects {
		f.Add([]byte(document), "RayCluster")
	}
	f.Add([]byte(`{"resources":[{"name":"../x","kind":"A"}],"preferredVersion":{"version":"v1/../.."}}`), "A")
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		r, err := parseResources(body, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: kind})
		if err == nil && (r.Group != "g" || r.Version != "v1" || r.Resource == "" || strings.ContainsAny(r.Resource, "/?#%")) {
			t.Errorf("%+v of %s", r, body)
		}
		if version, err := parseGroup(body); err == nil && (version == "" || strings.ContainsAny(version, "/?#%")) {
			t.Errorf("%q of %s", version, body)
		}
	})
}

// FuzzOwnerReference: whatever an owner reference says, requests are only for objects of the
// pod's namespace and for documents of discovery, and the answer is never empty.
func FuzzOwnerReference(f *testing.F) {
	f.Add("apps/v1", "ReplicaSet", "rs")
	f.Add("batch/v1", "Job", "../../../../api/v1/namespaces/n/secrets/s")
	f.Add("../v1", "A", "b")
	f.Add("a/b/c", "A", "b")
	f.Add("", "Pod", "p")
	api := newFakeAPI()
	c := api.cluster(f)
	f.Fuzz(func(t *testing.T, apiVersion, kind, name string) {
		controller := true
		owner, _, err := c.top(context.Background(), Pod{"n", "p"}, &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(apiVersion + kind + name), Controller: &controller})
		if err != nil && !isAnswer(err) {
			t.Skip(err) // no URL
		}
		if owner != (Owner{kind, name}) {
			t.Errorf("%v, %v", owner, err)
		}
		api.mu.Lock()
		defer api.mu.Unlock()
		for path := range api.asked {
			if segments := strings.Count(path, "/"); !strings.HasPrefix(path, "/apis/") && !strings.HasPrefix(path, "/api/v1/namespaces/n/") || segments > 7 || strings.Contains(path+"/", "/../") {
				t.Errorf("asked %s", path)
			}
		}
		clear(api.asked)
	})
}

// FuzzWorkloadLabel: a setting is written as it was read.
func FuzzWorkloadLabel(f *testing.F) {
	for _, text := range []string{"app", "volcano.sh/job-name=Job", "a=", "=", "a=b=c", "a/b/c", "é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseWorkloadLabel(text)
		if err != nil {
			return
		}
		if again, err := ParseWorkloadLabel(l.String()); l.String() != text || err != nil || again != l {
			t.Errorf("%q: %+v, %v, %+v", text, l, err, again)
		}
		if b, err := json.Marshal(map[string]string{l.Key: l.Kind}); err != nil || strings.Contains(string(b), `\u`) {
			t.Errorf("%q: %s", text, b)
		}
	})
}

// FuzzSelector: a parsed selector parses to the same again, and selects something.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{DefaultSelector, "x in (a, or),!y", "or or or", "a=b or c!=d,e", "x in (a", " or ", "a==b or a notin (c)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		selectors, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(strings.Join(selectors, " or "))
		if err != nil || !slices.Equal(again, selectors) || slices.Contains(selectors, "") {
			t.Errorf("%q is %q, and that %q: %v", text, selectors, again, err)
		}
	})
}

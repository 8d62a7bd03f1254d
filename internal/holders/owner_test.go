package holders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// controller is an object that owns others.
type controller struct{ path, apiVersion, kind string }

var (
	replicaSet  = controller{"/apis/apps/v1/namespaces/n/replicasets/", "apps/v1", "ReplicaSet"}
	deployment  = controller{"/apis/apps/v1/namespaces/n/deployments/", "apps/v1", "Deployment"}
	statefulSet = controller{"/apis/apps/v1/namespaces/n/statefulsets/", "apps/v1", "StatefulSet"}
	daemonSet   = controller{"/apis/apps/v1/namespaces/n/daemonsets/", "apps/v1", "DaemonSet"}
	job         = controller{"/apis/batch/v1/namespaces/n/jobs/", "batch/v1", "Job"}
	cronJob     = controller{"/apis/batch/v1/namespaces/n/cronjobs/", "batch/v1", "CronJob"}
	barePod     = controller{"/api/v1/namespaces/n/pods/", "v1", "Pod"}
	rollout     = controller{"/apis/argoproj.io/v1alpha1/namespaces/n/rollouts/", "argoproj.io/v1alpha1", "Rollout"}
	rayCluster  = controller{"/apis/ray.io/v1/namespaces/n/rayclusters/", "ray.io/v1", "RayCluster"}
	oldCluster  = controller{"/apis/ray.io/v1/namespaces/n/rayclusters/", "ray.io/v1alpha1", "RayCluster"}
	pyTorchJob  = controller{"/apis/kubeflow.org/v1/namespaces/n/pytorchjobs/", "kubeflow.org/v1", "PyTorchJob"}
	workerSet   = controller{"/apis/leaderworkerset.x-k8s.io/v1/namespaces/n/leaderworkersets/", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"}
	jobSet      = controller{"/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/", "jobset.x-k8s.io/v1alpha2", "JobSet"}
	tenant      = controller{"/apis/example.com/v1/tenants/", "example.com/v1", "Tenant"}
	gone        = controller{"", "gone.example.com/v1", "Gone"}
)

// operators adds the groups that need discovery.
func operators(f *fakeAPI) {
	f.serve("argoproj.io/v1alpha1", "Rollout", "rollouts", true)
	f.serve("ray.io/v1", "RayCluster", "rayclusters", true)
	f.serve("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", true)
	f.serve("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", true)
	f.serve("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", true)
	f.serve("example.com/v1", "Tenant", "tenants", false)
}

// link is an object of a chain of owners.
type link struct {
	of   controller
	name string
}

// chain adds a pod and what owns it, the nearest first.
func (f *fakeAPI) chain(podName string, owners ...link) {
	path := barePod.path + podName
	for _, o := range owners {
		f.add(path, nil, ownerRef{apiVersion: o.of.apiVersion, kind: o.of.kind, name: o.name})
		if path = o.of.path + o.name; o.of.path == "" { // not available
			return
		}
	}
	f.add(path, nil)
}

func TestOwners(t *testing.T) {
	for _, test := range []struct {
		name   string
		owners []link
		want   Owner
		unsure bool
	}{
		{"bare pod", nil, Owner{"Pod", "p"}, false},
		{"ReplicaSet", []link{{replicaSet, "rs"}}, Owner{"ReplicaSet", "rs"}, false},
		{"Deployment", []link{{replicaSet, "web-5d"}, {deployment, "web"}}, Owner{"Deployment", "web"}, false},
		{"StatefulSet", []link{{statefulSet, "db"}}, Owner{"StatefulSet", "db"}, false},
		{"DaemonSet", []link{{daemonSet, "ds"}}, Owner{"DaemonSet", "ds"}, false},
		{"Job", []link{{job, "train"}}, Owner{"Job", "train"}, false},
		{"CronJob", []link{{job, "nightly-29"}, {cronJob, "nightly"}}, Owner{"CronJob", "nightly"}, false},
		{"Rollout", []link{{replicaSet, "blue-1"}, {rollout, "blue"}}, Owner{"Rollout", "blue"}, false},
		{"RayCluster", []link{{rayCluster, "ray"}}, Owner{"RayCluster", "ray"}, false},
		{"RayCluster of a version that is gone", []link{{oldCluster, "ray"}, {deployment, "above"}}, Owner{"RayCluster", "ray"}, true},
		{"PyTorchJob", []link{{pyTorchJob, "llm"}}, Owner{"PyTorchJob", "llm"}, false},
		{"JobSet", []link{{job, "js-w-0"}, {jobSet, "js"}}, Owner{"JobSet", "js"}, false},
		{"worker of a LeaderWorkerSet", []link{{statefulSet, "lws-0"}, {barePod, "lws-0"}, {statefulSet, "lws"}, {workerSet, "lws"}}, Owner{"LeaderWorkerSet", "lws"}, false},
		{"owner in no namespace", []link{{statefulSet, "db"}, {tenant, "acme"}}, Owner{"Tenant", "acme"}, false},
		{"mirror pod", []link{{controller{"", "v1", "Node"}, "node1"}}, Owner{"Node", "node1"}, false},
		{"kind that nobody knows", []link{{gone, "g"}}, Owner{"Gone", "g"}, true},
		{"group without the kind", []link{{controller{"", "ray.io/v1", "RayTune"}, "g"}}, Owner{"RayTune", "g"}, true},
		{"path in place of a name", []link{{controller{"", "apps/v1", "ReplicaSet"}, "../../x"}}, Owner{"ReplicaSet", "../../x"}, true},
		{"path in place of a version", []link{{controller{"", "../../v1", "ReplicaSet"}, "x"}}, Owner{"ReplicaSet", "x"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeAPI()
			operators(f)
			f.chain("p", test.owners...)
			owner, sure, err := f.cluster(t).ownerOf(context.Background(), Pod{"n", "p"})
			if err != nil || owner != test.want || sure == test.unsure {
				t.Errorf("%v, %v, %v; want %v", owner, sure, err, test.want)
			}
		})
	}
}

// TestOwnersThatEndEarly: if the chain cannot be followed, the last known owner is used.
func TestOwnersThatEndEarly(t *testing.T) {
	web := []link{{replicaSet, "rs"}, {deployment, "web"}}
	for _, test := range []struct {
		name   string
		change func(*fakeAPI)
		want   Owner
	}{
		{"denied", func(f *fakeAPI) { f.on(replicaSet.path+"rs", forbid) }, Owner{"ReplicaSet", "rs"}},
		{"gone", func(f *fakeAPI) { delete(f.objects, replicaSet.path+"rs") }, Owner{"ReplicaSet", "rs"}},
		{"another of that name", func(f *fakeAPI) {
			f.add(barePod.path+"p", nil, ownerRef{apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", uid: "earlier"})
		}, Owner{"ReplicaSet", "rs"}},
		{"no controller", func(f *fakeAPI) {
			f.add(barePod.path+"p", nil, ownerRef{apiVersion: "apps/v1", kind: "ReplicaSet", name: "rs", plain: true})
		}, Owner{"Pod", "p"}},
		{"discovery denied", func(f *fakeAPI) {
			f.chain("p", link{rayCluster, "ray"}, link{deployment, "above"})
			f.on("/apis/ray.io/v1", forbid)
		}, Owner{"RayCluster", "ray"}},
		{"its own owner", func(f *fakeAPI) {
			f.add(deployment.path+"web", nil, ownerRef{apiVersion: "apps/v1", kind: "Deployment", name: "web"})
		}, Owner{"Deployment", "web"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeAPI()
			operators(f)
			f.chain("p", web...)
			test.change(f)
			owner, sure, err := f.cluster(t).ownerOf(context.Background(), Pod{"n", "p"})
			if err != nil || owner != test.want || sure && owner.Kind != "Pod" {
				t.Errorf("%v, %v, %v; want %v", owner, sure, err, test.want)
			}
		})
	}
}

// TestPodsThatGiveNoAnswer distinguishes the API server's answers about a pod from its
// failures.
func TestPodsThatGiveNoAnswer(t *testing.T) {
	t.Parallel()
	write := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		}
	}
	status := func(code int, reason string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, reason) }
	}
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   error // nil is any failure
	}{
		{"not found", status(404, "NotFound"), errAbsent},
		{"forbidden", forbid, errDenied},
		{"unauthorized", status(401, "Unauthorized"), nil},
		{"too many requests", status(429, "TooManyRequests"), nil},
		{"internal error", status(500, "InternalError"), nil},
		{"bad gateway in HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(502)
			io.WriteString(w, "<html>")
		}, nil},
		{"HTML", write("text/html", "<html>log in</html>"), nil},
		{"no JSON", write("application/json", "{"), nil},
		{"other JSON", write("application/json", `{"a":1}`), nil},
		{"nothing", write("application/json", ""), nil},
		{"owners of another type", write("application/json", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"ownerReferences":7}}`), nil},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/api/v1/namespaces/n/pods/q", http.StatusFound)
		}, nil},
		{"cut", func(_ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, nil},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeAPI()
			f.chain("q")
			f.on(barePod.path+"p", test.answer)
			within := time.Minute // for an answer
			if test.want == nil {
				within = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			owner, _, err := f.cluster(t).ownerOf(ctx, Pod{"n", "p"})
			if err == nil || test.want != nil && !errors.Is(err, test.want) || test.want == nil && isAnswer(err) {
				t.Errorf("%v, %v; want %v", owner, err, test.want)
			}
			if f.count(barePod.path+"q") != 0 {
				t.Error("followed a redirect")
			}
		})
	}
}

// TestNamesThatAreNone: invalid names in an exporter's labels do not become paths at the API
// server.
func TestNamesThatAreNone(t *testing.T) {
	f := newFakeAPI()
	c := f.cluster(t)
	for _, p := range []Pod{{"n", "../secrets/s"}, {"..", "p"}, {"n", "p/log"}, {"n/x", "p"}, {"n", "p?x"}, {"n", "P"}, {"", "p"}, {"n", strings.Repeat("a", 300)}, {"n", "."}} {
		if owner, _, err := c.ownerOf(context.Background(), p); !errors.Is(err, errAbsent) {
			t.Errorf("%q: %v, %v", p, owner, err)
		}
	}
	if n := f.count(""); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestNamesByLabel(t *testing.T) {
	keys := []WorkloadLabel{{"volcano.sh/job-name", "VolcanoJob"}, {"app", ""}}
	for _, test := range []struct {
		labels map[string]string
		want   Owner
	}{
		{map[string]string{"app": "a", "volcano.sh/job-name": "v"}, Owner{"VolcanoJob", "v"}},
		{map[string]string{"app": "a", "volcano.sh/job-name": ""}, Owner{"", "a"}},
		{map[string]string{"other": "a"}, Owner{"StatefulSet", "db"}},
	} {
		f := newFakeAPI()
		f.chain("p", link{statefulSet, "db"})
		f.add(barePod.path+"p", test.labels, ownerRef{apiVersion: "apps/v1", kind: "StatefulSet", name: "db"})
		owner, sure, err := f.cluster(t, keys...).ownerOf(context.Background(), Pod{"n", "p"})
		if err != nil || !sure || owner != test.want {
			t.Errorf("%v: %v, %v, %v; want %v", test.labels, owner, sure, err, test.want)
		}
		if asked := f.count(statefulSet.path + "db"); (asked > 0) != (test.want.Kind == "StatefulSet") {
			t.Errorf("%v: asked for the owner %d times", test.labels, asked)
		}
	}
}

// TestOwnersAreAskedForOnce: the pods of one Job share the look-up of the Job.
func TestOwnersAreAskedForOnce(t *testing.T) {
	const pods = 20
	f := newFakeAPI()
	operators(f)
	for i := range pods {
		f.chain(fmt.Sprintf("p-%d", i), link{pyTorchJob, "llm"})
	}
	c := f.cluster(t)
	for i := range pods {
		owner, sure, err := c.ownerOf(t.Context(), Pod{"n", fmt.Sprintf("p-%d", i)})
		if err != nil || !sure || owner != (Owner{"PyTorchJob", "llm"}) {
			t.Errorf("%v, %v, %v", owner, sure, err)
		}
	}
	if n := f.count(""); n != pods+2 { // the group and the job
		t.Errorf("%d requests: %v", n, f.asked)
	}
}

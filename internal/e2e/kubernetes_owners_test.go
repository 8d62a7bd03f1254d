package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// holders is an exporter whose GPU n is held by the n-th of its pods.
type holders struct {
	url string

	mu   sync.Mutex
	body []byte
}

// startHolders starts an exporter whose GPUs are still free.
func startHolders(t *testing.T) *holders {
	t.Helper()
	h := &holders{}
	up := startUpstream(func() ([]byte, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.body, nil
	})
	t.Cleanup(up.stop)
	h.url = up.url
	h.hold("none")
	return h
}

// hold gives the GPUs to pods of a namespace.
func (h *holders) hold(namespace string, pods ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body = []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"99\",UUID=\"GPU-99\"} 1\n")
	for i, pod := range pods {
		h.body = fmt.Appendf(h.body, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=\"GPU-%d\",namespace=\"%s\",pod=\"%s\",container=\"main\"} 50\n", i, i, namespace, pod)
	}
}

// startWith runs our program on the exporter and the API server of a kubeconfig.
func (h *holders) startWith(t *testing.T, kubeconfig string, flags ...string) *child {
	t.Helper()
	return startProxy(t, itself(t), append([]string{"--source=" + h.url + "/metrics", "--poll=1s", "--kube.workloads", "--kube.config=" + kubeconfig}, flags...)...)
}

var holding = regexp.MustCompile(`(?m)^kpulse_allocation_info\{.*workload_pod="([^"]*)".*,workload_kind="([^"]*)",workload_name="([^"]*)"`)

// workloads returns the owners of pods according to a proxy, as "KIND NAME" by pod.
func workloads(t *testing.T, c *child) map[string]string {
	t.Helper()
	code, body := page(t, c, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d\n%s", code, body)
	}
	of := map[string]string{}
	for _, m := range holding.FindAllStringSubmatch(body, -1) {
		of[m[1]] = strings.TrimSpace(m[2] + " " + m[3])
	}
	return of
}

// awaitWorkloads waits until a proxy reports these owners of pods.
func awaitWorkloads(t *testing.T, c *child, want map[string]string) {
	t.Helper()
	var got map[string]string
	defer func() {
		if t.Failed() {
			t.Errorf("got  %v\nwant %v\n%s", got, want, c.Logged())
		}
	}()
	awaitTrue(t, "right workloads", func() bool {
		got = workloads(t, c)
		return maps.Equal(got, want)
	})
}

// ownerTest creates pods with an owner and the label app=NAME.
type ownerTest struct {
	name string
	make func(k *cluster, t *testing.T, ns, node, name string)
	kind string // of the topmost owner, which has the same name
}

// owners are the kinds of pods' owners. Tests create the objects of other operators as those do;
// Kubernetes' own controllers run.
var owners = []ownerTest{
	{"pod", func(k *cluster, t *testing.T, ns, node, name string) { k.apply(t, ns, barePod(name, nobody, node)) }, "Pod"},
	{"deployment", func(k *cluster, t *testing.T, ns, node, name string) { k.apply(t, ns, deployment(name, node, 2)) }, "Deployment"},
	{"statefulset", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, controller("StatefulSet", name, nobody, name, node, "replicas: 2, serviceName: none"))
	}, "StatefulSet"},
	{"daemonset", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, controller("DaemonSet", name, nobody, name, node, ""))
	}, "DaemonSet"},
	{"replicaset", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, controller("ReplicaSet", name, nobody, name, node, "replicas: 1"))
	}, "ReplicaSet"},
	{"replication", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: ReplicationController, metadata: {name: %s}, spec: {replicas: 1, selector: {app: %[1]s}, template: %s}}", name, podTemplate(name, node)))
	}, "ReplicationController"},
	{"job", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: %s}", name, jobSpec(name, node)))
	}, "Job"},
	{"cronjob", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, fmt.Sprintf("{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s}, spec: {schedule: '* * * * *', concurrencyPolicy: Forbid, jobTemplate: {spec: %s}}}", name, jobSpec(name, node)))
	}, "CronJob"},
	{"rollout", func(k *cluster, t *testing.T, ns, node, name string) {
		rollout := k.custom(t, ns, "argoproj.io/v1alpha1", "Rollout", name, nobody)
		k.apply(t, ns, controller("ReplicaSet", name+"-6f9c", controlledBy(rollout), name, node, "replicas: 2"))
	}, "Rollout"},
	{"raycluster", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, barePod(name, controlledBy(k.custom(t, ns, "ray.io/v1", "RayCluster", name, nobody)), node))
	}, "RayCluster"},
	{"rayjob", func(k *cluster, t *testing.T, ns, node, name string) {
		job := k.custom(t, ns, "ray.io/v1", "RayJob", name, nobody)
		k.apply(t, ns, barePod(name, controlledBy(k.custom(t, ns, "ray.io/v1", "RayCluster", name+"-x7k2p", controlledBy(job))), node))
	}, "RayJob"},
	{"pytorchjob", func(k *cluster, t *testing.T, ns, node, name string) {
		k.apply(t, ns, barePod(name, controlledBy(k.custom(t, ns, "kubeflow.org/v1", "PyTorchJob", name, nobody)), node))
	}, "PyTorchJob"},
	{"jobset", func(k *cluster, t *testing.T, ns, node, name string) {
		set := k.custom(t, ns, "jobset.x-k8s.io/v1alpha2", "JobSet", name, nobody)
		k.apply(t, ns, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s-workers-0, %s}, spec: %s}", name, controlledBy(set), jobSpec(name, node)))
	}, "JobSet"},
	{"lws", makeLeaderWorkerSet, "LeaderWorkerSet"},
	{"trainer", func(k *cluster, t *testing.T, ns, node, name string) { // unknown to the ClusterRole
		k.apply(t, ns, barePod(name, controlledBy(k.custom(t, ns, "example.com/v1", "Trainer", name, nobody)), node))
	}, "Trainer"},
}

// makeLeaderWorkerSet creates what the LeaderWorkerSet controller does: a StatefulSet of leaders,
// and for each leader, owned by its pod, a StatefulSet of workers.
func makeLeaderWorkerSet(k *cluster, t *testing.T, ns, node, name string) {
	set := k.custom(t, ns, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, nobody)
	k.apply(t, ns, controller("StatefulSet", name, controlledBy(set), name, node, "replicas: 1, serviceName: none"))
	leader := k.awaitPods(t, ns, "app="+name, 1)[0]
	leader["apiVersion"], leader["kind"] = "v1", "Pod" // absent from the items of a list
	k.apply(t, ns, controller("StatefulSet", name+"-0", controlledBy(leader), name+"-workers", node, "replicas: 2, serviceName: none, ordinals: {start: 1}"))
	k.awaitPods(t, ns, "app="+name+"-workers", 2)
}

// TestKubernetesOwners: pods of each kind of owner have the topmost owner as workload, with the
// rights of deploy/kubernetes/rbac.yaml. Pods of one owner share the requests about it.
func TestKubernetesOwners(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	want := map[string]string{}
	for _, o := range owners {
		o.make(k, t, ns, node, o.name)
	}
	for _, o := range owners {
		for _, pod := range k.awaitSomePods(t, ns, o.name) {
			want[pod] = o.kind + " " + o.name
		}
	}
	a := k.account(t, ns, "proxy")
	k.bind(t, a, "", "kpulse-proxy-workloads")
	awaitTrue(t, "right to get pods", func() bool { return k.allowed(t, a, right{"get", "", "pods", "", ""}) })
	exporter := startHolders(t)
	exporter.hold(ns, slices.Collect(maps.Keys(want))...)
	c := exporter.startWith(t, k.kubeconfig(t, a, k.url))
	awaitWorkloads(t, c, want)
	if log := c.Logged(); strings.Count(log, "trainers.example.com") != 1 || !strings.Contains(log, "deploy/kubernetes/rbac.yaml") {
		t.Errorf("the log does not name the missing right exactly once:\n%s", log)
	}
	checkRequests(t, k.requests(t, a))
}

// checkRequests checks that the program sends only the necessary requests: one for each object,
// except pods that are owners too, and one for the kinds of a group.
func checkRequests(t *testing.T, requests []request) {
	t.Helper()
	times := map[string]int{}
	for _, r := range requests {
		times[r.String()]++
		if r.Verb != "get" || !strings.HasPrefix(r.UserAgent, "kpulse-proxy/") {
			t.Errorf("%s by %s", r, r.UserAgent)
		}
	}
	if len(times) == 0 {
		t.Error("the API server received no request")
	}
	for r, n := range times {
		if n > 1 && !strings.HasPrefix(r, "get pods ") && !strings.HasPrefix(r, "get /apis/ray.io/") {
			t.Errorf("%s %d times", r, n)
		}
	}
}

// awaitSomePods waits until all pods with the label app=NAME, or NAME-workers, run, and returns
// their names.
func (c *cluster) awaitSomePods(t *testing.T, ns, name string) (names []string) {
	t.Helper()
	awaitTrue(t, "running pods of "+name, func() bool {
		names = nil
		for _, pod := range c.list(t, "v1", "Pod", ns, "") {
			if app := pod.at("metadata", "labels", "app"); app != name && app != name+"-workers" {
				continue
			}
			if pod.at("status", "phase") != "Running" {
				return false
			}
			names = append(names, pod.name())
		}
		return len(names) > 0
	})
	return names
}

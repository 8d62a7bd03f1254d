package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// grants is what each ClusterRole of deploy/kubernetes/rbac.yaml grants, derived from what the
// flags need.
var grants = map[string][]right{
	"kpulse-proxy-workloads": {
		{"get", "", "pods", "", ""}, {"get", "apps", "replicasets", "", ""}, {"get", "apps", "deployments", "", ""},
		{"get", "apps", "statefulsets", "", ""}, {"get", "apps", "daemonsets", "", ""}, {"get", "batch", "jobs", "", ""},
		{"get", "batch", "cronjobs", "", ""}, {"get", "argoproj.io", "rollouts", "", ""}, {"get", "ray.io", "rayclusters", "", ""},
		{"get", "ray.io", "rayjobs", "", ""}, {"get", "kubeflow.org", "pytorchjobs", "", ""}, {"get", "jobset.x-k8s.io", "jobsets", "", ""},
		{"get", "leaderworkerset.x-k8s.io", "leaderworkersets", "", ""},
	},
	"kpulse-proxy-discovery": {{"list", "", "pods", "", ""}, {"watch", "", "pods", "", ""}},
	"kpulse-proxy-dra": {
		{"list", "resource.k8s.io", "resourceslices", "", ""}, {"get", "resource.k8s.io", "resourceclaims", "", ""},
	},
}

// refused are rights that none of them grants.
var refused = []right{
	{"get", "", "secrets", "", ""}, {"list", "", "secrets", "", "kpulse"}, {"get", "", "configmaps", "", "kpulse"}, {"get", "", "pods", "log", "kpulse"},
	{"create", "", "pods", "exec", "kpulse"}, {"get", "", "pods", "exec", "kpulse"}, {"create", "", "pods", "portforward", "kpulse"},
	{"get", "", "nodes", "", ""}, {"get", "", "nodes", "proxy", ""}, {"list", "", "namespaces", "", ""}, {"create", "", "serviceaccounts", "token", "kpulse"},
	{"delete", "", "pods", "", "kpulse"}, {"patch", "", "pods", "", "kpulse"}, {"create", "", "pods", "", "kpulse"}, {"patch", "apps", "deployments", "", ""},
	{"list", "apps", "replicasets", "", ""}, {"list", "", "pods", "", ""}, {"update", "resource.k8s.io", "resourceslices", "", ""}, {"delete", "resource.k8s.io", "resourceclaims", "", ""},
	{"impersonate", "", "users", "", ""}, {"bind", "rbac.authorization.k8s.io", "clusterroles", "", ""}, {"*", "*", "*", "", ""},
}

// TestKubernetesRights: each ClusterRole grants what its flag needs and nothing of the others, and
// all together grant no right to read Secrets, enter pods or change anything.
func TestKubernetesRights(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns := k.namespace(t)
	for role, granted := range grants {
		a := k.account(t, ns, role)
		k.bind(t, a, "", role)
		for _, r := range granted {
			awaitTrue(t, role+" to grant something", func() bool { return k.allowed(t, a, r) })
		}
		for other, rights := range grants {
			for _, r := range rights {
				if other != role && k.allowed(t, a, r) {
					t.Errorf("%s grants %v", role, r)
				}
			}
		}
	}
	all := k.account(t, "kpulse", "kpulse-proxy")
	for role, granted := range grants {
		for _, r := range granted {
			everywhere := role != "kpulse-proxy-discovery"
			if k.allowed(t, all, r) != everywhere {
				t.Errorf("%s granted everywhere, as the file binds it: %v, want %v", r, !everywhere, everywhere)
			}
			if r.namespace = "kpulse"; !k.allowed(t, all, r) {
				t.Errorf("the file does not grant %v", r)
			}
		}
	}
	for _, r := range refused {
		if k.allowed(t, all, r) {
			t.Errorf("the file grants %v", r)
		}
	}
}

// TestKubernetesRightsOnRequests tests requests themselves: the account reads the metadata of a
// pod, but can neither read a Secret nor delete the pod.
func TestKubernetesRightsOnRequests(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.deploy(t)
	k.apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {a: b}}`)
	k.apply(t, ns, strings.Replace(podTemplate("pod", node), "{metadata: {", "{apiVersion: v1, kind: Pod, metadata: {name: pod, ", 1))
	k.awaitPods(t, ns, "app=pod", 1)
	a := k.account(t, "kpulse", "kpulse-proxy")
	pod := "/api/v1/namespaces/" + ns + "/pods/pod"
	awaitTrue(t, "right to get a pod", func() bool { return k.allowed(t, a, right{"get", "", "pods", "", ns}) })
	for _, test := range []struct {
		method, path string
		code         int
	}{
		{http.MethodGet, pod, 200},
		{http.MethodGet, "/api/v1/namespaces/" + ns + "/secrets/secret", 403},
		{http.MethodGet, "/api/v1/namespaces/" + ns + "/secrets", 403},
		{http.MethodGet, "/api/v1/namespaces/" + ns + "/pods", 403}, // no exporters are here
		{http.MethodGet, "/api/v1/namespaces/kpulse/pods?labelSelector=app.kubernetes.io%2Fname%3Ddcgm-exporter", 200},
		{http.MethodPost, pod + "/exec?command=sh", 403},
		{http.MethodGet, pod + "/log", 403},
		{http.MethodDelete, pod, 403},
		{http.MethodGet, "/apis/resource.k8s.io/v1/resourceslices", 200},
	} {
		code, answer, err := k.send(k.url, a.token, test.method, test.path, "application/json", nil)
		if err != nil || code != test.code {
			t.Errorf("%s %s: %d %s %v, want %d", test.method, test.path, code, answer.at("message"), err, test.code)
		}
	}
	if k.get(t, "v1", "Pod", ns, "pod") == nil {
		t.Error("the pod is gone")
	}
}

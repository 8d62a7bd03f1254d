package e2e

import (
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

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// account is a ServiceAccount with a token from the API server.
type account struct{ namespace, name, token string }

// user returns its name in RBAC and the audit log.
func (a account) user() string { return "system:serviceaccount:" + a.namespace + ":" + a.name }

// namespace creates a namespace for this test.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	name := unique(t)
	c.apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	return name
}

// node creates a node with GPUs for this test, with a unique name if none is given, and waits until
// kwok makes it ready. Pods need its nodeName or nodeSelector, and no toleration.
func (c *cluster) node(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		name = unique(t)
	}
	c.apply(t, "", fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s}}
`, name))
	c.merge(t, "v1", "Node", "", name, "status", `{"status": {
		"capacity": {"cpu": "64", "memory": "256Gi", "pods": "500", "nvidia.com/gpu": "8"},
		"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500", "nvidia.com/gpu": "8"}}}`)
	awaitTrue(t, "ready node "+name, func() bool {
		node := c.get(t, "v1", "Node", "", name)
		text, _ := json.Marshal(node["status"])
		return strings.Contains(string(text), `"reason":"KubeletReady"`) && node.at("spec", "taints") == ""
	})
	return name
}

// account creates a ServiceAccount, unless it exists, and a token for it that is valid for an hour.
func (c *cluster) account(t *testing.T, namespace, name string) account {
	t.Helper()
	if c.get(t, "v1", "ServiceAccount", namespace, name) == nil {
		c.apply(t, namespace, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+"}}")
	}
	answer := c.must(t, http.MethodPost, c.path(t, "v1", "ServiceAccount", namespace, name)+"/token", "application/json",
		[]byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}`))
	return account{namespace, name, answer.at("status", "token")}
}

// deploy applies deploy/kubernetes/rbac.yaml unchanged, once for all tests: its ClusterRoles, and
// the ServiceAccount kpulse/kpulse-proxy, which has all of them.
func (c *cluster) deploy(t *testing.T) {
	t.Helper()
	c.deployed.Do(func() {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", "rbac.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range documents(t, "{apiVersion: v1, kind: Namespace, metadata: {name: kpulse}}\n---\n"+string(text)) {
			c.put(t, "", o)
		}
	})
}

// define creates a kind with a CustomResourceDefinition that accepts any content, once for all
// tests.
func (c *cluster) define(t *testing.T, apiVersion, kind, plural string) {
	t.Helper()
	once, _ := c.defined.LoadOrStore(apiVersion+" "+kind, &sync.Once{})
	once.(*sync.Once).Do(func() {
		group, version, _ := strings.Cut(apiVersion, "/")
		for _, o := range documents(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[4]s.%[1]s
  annotations: {api-approved.kubernetes.io: "unapproved, for tests"}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s}
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, kind, plural, strings.ToLower(kind))) {
			c.put(t, "", o)
		}
	})
}

// bind grants a ClusterRole of deploy/kubernetes/rbac.yaml in a namespace, or everywhere if
// namespace is "", until the test ends or revoke is called. Both take effect a moment later.
func (c *cluster) bind(t *testing.T, a account, namespace, clusterRole string) (revoke func()) {
	t.Helper()
	c.deploy(t)
	name, kind := unique(t), "ClusterRoleBinding"
	if namespace != "" {
		kind = "RoleBinding"
	}
	c.apply(t, namespace, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{kind: ServiceAccount, namespace: %s, name: %s}]
`, kind, name, clusterRole, a.namespace, a.name))
	return func() { c.delete(t, "rbac.authorization.k8s.io/v1", kind, namespace, name) }
}

// right is what RBAC may grant. Namespace "" means all namespaces.
type right struct{ verb, group, resource, subresource, namespace string }

// allowed asks the API server, as the account, whether it may do something.
func (c *cluster) allowed(t *testing.T, a account, r right) bool {
	t.Helper()
	review, err := json.Marshal(map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]string{
			"verb": r.verb, "group": r.group, "resource": r.resource, "subresource": r.subresource, "namespace": r.namespace}},
	})
	if err != nil {
		t.Fatal(err)
	}
	code, answer, err := c.send(c.url, a.token, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", review)
	if err != nil || code >= 300 {
		t.Fatalf("SelfSubjectAccessReview: %d %s %v", code, answer.at("message"), err)
	}
	return answer.at("status", "allowed") == "true"
}

// kubeconfig writes a file for --kube.config, with the account's token and an API server's URL: the
// cluster's or a gate's.
func (c *cluster) kubeconfig(t *testing.T, a account, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.writeKubeconfig(file, url, a.token); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c *cluster) writeKubeconfig(file, url, token string) error {
	return os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: test, user: {token: "%s"}}]
`, url, c.file("apiserver.crt"), token), 0o600)
}

// request is a request that the API server has answered.
type request struct {
	Verb, UserAgent string
	RequestURI      string
	User            struct{ Username string }
	ObjectRef       struct{ Resource, Subresource, Namespace, Name, APIGroup, APIVersion string }
	ResponseStatus  struct{ Code int }
	Stage           string // for watches, ResponseStarted and ResponseComplete
}

// String returns, for example, "get apps/replicasets ns/name 200" or "get /apis/ray.io/v1 200".
func (r request) String() string {
	ref := r.ObjectRef
	if ref.Resource == "" {
		return fmt.Sprintf("%s %s %d", r.Verb, r.RequestURI, r.ResponseStatus.Code)
	}
	what := strings.TrimPrefix(ref.APIGroup+"/"+ref.Resource, "/")
	if ref.Subresource != "" {
		what += "/" + ref.Subresource
	}
	return fmt.Sprintf("%s %s %s %d", r.Verb, what, strings.Trim(ref.Namespace+"/"+ref.Name, "/"), r.ResponseStatus.Code)
}

// requests returns the program's requests as that account that the API server has answered so far,
// in order.
func (c *cluster) requests(t *testing.T, a account) (requests []request) {
	t.Helper()
	file, err := os.Open(c.file("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return requests // skip an incomplete line
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.User.Username == a.user() && !strings.HasPrefix(r.UserAgent, "Go-http-client/") { // the tests' own
			requests = append(requests, r)
		}
	}
}

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// Requests of the tests to the API server, without a client library of Kubernetes: what the program
// uses must not judge it.

// object is a Kubernetes object as JSON.
type object map[string]any

// at returns the string at a path of keys and indices, "" if there is none.
func (o object) at(path ...any) string {
	var v any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			if l, _ := v.([]any); step < len(l) {
				v = l[step]
			} else {
				v = nil
			}
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (o object) name() string { return o.at("metadata", "name") }

// resource is how the API server serves a kind.
type resource struct {
	Name       string
	Kind       string
	Namespaced bool
}

// trust creates the client that trusts the API server's certificate.
func (c *cluster) trust() error {
	ca, err := os.ReadFile(c.file("apiserver.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("apiserver.crt has no certificate")
	}
	c.client = &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return nil
}

// ask sends a request as the administrator.
func (c *cluster) ask(method, path, contentType string, body []byte) (code int, answer object, err error) {
	return c.send(c.url, c.admin, method, path, contentType, body)
}

// send sends a request with a token to the API server or to a gate.
func (c *cluster) send(url, token, method, path, contentType string, body []byte) (code int, answer object, err error) {
	req, err := http.NewRequest(method, url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", contentType)
	res, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		err = json.Unmarshal(text, &answer)
	}
	return res.StatusCode, answer, err
}

// must sends a request as the administrator, which must succeed.
func (c *cluster) must(t *testing.T, method, path, contentType string, body []byte) object {
	t.Helper()
	code, answer, err := c.ask(method, path, contentType, body)
	if err != nil || code >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, code, answer.at("message"), err)
	}
	return answer
}

// path returns the path of an object, or of its kind if name is empty. It waits for a kind that is
// being defined.
func (c *cluster) path(t *testing.T, apiVersion, kind, namespace, name string) string {
	t.Helper()
	root := "/apis/" + apiVersion
	if !strings.Contains(apiVersion, "/") {
		root = "/api/" + apiVersion
	}
	r := c.resource(t, root, kind)
	if r.Namespaced && namespace != "" {
		root += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(root+"/"+r.Name+"/"+name, "/")
}

func (c *cluster) resource(t *testing.T, root, kind string) resource {
	t.Helper()
	if r, ok := c.resources.Load(root + " " + kind); ok {
		return r.(resource)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, answer, err := c.ask(http.MethodGet, root, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Resources []resource }
		text, _ := json.Marshal(answer)
		json.Unmarshal(text, &list)
		for _, r := range list.Resources {
			if r.Kind == kind && !strings.Contains(r.Name, "/") {
				c.resources.Store(root+" "+kind, r)
				return r
			}
		}
	}
	t.Fatalf("the API server has no %s in %s", kind, root)
	return resource{}
}

// apply creates or changes the objects of a YAML text, and returns them. Namespaced objects without
// a namespace get namespace. Created objects are deleted when the test ends.
func (c *cluster) apply(t *testing.T, namespace, text string) (objects []object) {
	t.Helper()
	for _, o := range documents(t, text) {
		path, created, answer := c.put(t, namespace, o)
		if created {
			t.Cleanup(func() { c.ask(http.MethodDelete, path+"?propagationPolicy=Background", "", nil) })
		}
		objects = append(objects, answer)
	}
	return objects
}

// documents reads the objects of a YAML text.
func documents(t *testing.T, text string) (objects []object) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
}

// put creates or changes an object, and returns its path and new state.
func (c *cluster) put(t *testing.T, namespace string, o object) (path string, created bool, answer object) {
	t.Helper()
	if own := o.at("metadata", "namespace"); own != "" {
		namespace = own
	}
	path = c.path(t, o.at("apiVersion"), o.at("kind"), namespace, o.name())
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	code, answer, err := c.ask(http.MethodPatch, path+"?fieldManager=test&force=true", "application/apply-patch+yaml", body)
	if err != nil || code >= 300 {
		t.Fatalf("apply %s %s: %d %s %v", o.at("kind"), o.name(), code, answer.at("message"), err)
	}
	return path, code == http.StatusCreated, answer
}

// get returns an object, or nil if there is none.
func (c *cluster) get(t *testing.T, apiVersion, kind, namespace, name string) object {
	t.Helper()
	path := c.path(t, apiVersion, kind, namespace, name)
	code, answer, err := c.ask(http.MethodGet, path, "", nil)
	if code == http.StatusNotFound {
		return nil
	}
	if err != nil || code >= 300 {
		t.Fatalf("GET %s: %d %s %v", path, code, answer.at("message"), err)
	}
	return answer
}

// list returns the objects of a kind that match a label selector.
func (c *cluster) list(t *testing.T, apiVersion, kind, namespace, selector string) (objects []object) {
	t.Helper()
	answer := c.must(t, http.MethodGet, c.path(t, apiVersion, kind, namespace, "")+"?labelSelector="+url.QueryEscape(selector), "", nil)
	items, _ := answer["items"].([]any)
	for _, item := range items {
		objects = append(objects, object(item.(map[string]any)))
	}
	return objects
}

// merge changes an object with a JSON merge patch; subresource is "" or a name such as "status".
func (c *cluster) merge(t *testing.T, apiVersion, kind, namespace, name, subresource, patch string) object {
	t.Helper()
	path := c.path(t, apiVersion, kind, namespace, name)
	return c.must(t, http.MethodPatch, strings.TrimSuffix(path+"/"+subresource, "/"), "application/merge-patch+json", []byte(patch))
}

// delete deletes an object and, in the background, what it owns.
func (c *cluster) delete(t *testing.T, apiVersion, kind, namespace, name string) {
	t.Helper()
	c.must(t, http.MethodDelete, c.path(t, apiVersion, kind, namespace, name)+"?propagationPolicy=Background", "", nil)
}

// awaitPods waits until exactly n pods match a label selector, all running and none being deleted,
// and returns them.
func (c *cluster) awaitPods(t *testing.T, namespace, selector string, n int) []object {
	t.Helper()
	var pods []object
	awaitTrue(t, fmt.Sprintf("%d running pods of %s", n, selector), func() bool {
		pods = c.list(t, "v1", "Pod", namespace, selector)
		running := 0
		for _, pod := range pods {
			if pod.at("status", "phase") == "Running" && pod.at("metadata", "deletionTimestamp") == "" {
				running++
			}
		}
		return running == n && len(pods) == n
	})
	return pods
}

// awaitTrue waits until a condition is true.
func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

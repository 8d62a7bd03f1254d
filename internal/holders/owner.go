package holders

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Owner is the workload of a pod: the topmost in the chain of the controllers that own
// it, such as CronJob and nightly, or Pod and its own name if it has no controller.
type Owner struct{ Kind, Name string }

// Pod names a pod.
type Pod struct{ Namespace, Name string }

const (
	// maxOwners ends the walk up from a pod. The longest chain in use has 7: Pod,
	// ReplicaSet, Deployment, Revision, Configuration, Service, InferenceService.
	maxOwners = 10
	// knownOwners is how many owners and kinds are remembered.
	knownOwners = 4096
	asJSON      = "application/json"
	asMetadata  = asJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + asJSON
)

// Why an object is not available although the API server answers. Every other error but
// errFails means that it does not answer correctly.
var (
	errAbsent  = errors.New("there is no such object")
	errDenied  = errors.New("the API server denies it")
	errUnknown = errors.New("the API server does not know this kind")
	// errFails means that the API server, which has just answered for a pod, fails for a kind of
	// owner.
	errFails = errors.New("the API server fails for this kind")
)

// isAnswer reports whether err is the API server's answer about an object.
func isAnswer(err error) bool {
	return errors.Is(err, errAbsent) || errors.Is(err, errDenied) || errors.Is(err, errUnknown)
}

// cluster finds owners by asking the API server for the metadata of objects, one by one. It
// is safe for concurrent use.
type cluster struct {
	*breaker
	client *Client
	labels []WorkloadLabel

	kept   *cache.LRUExpireCache // answers by path or UID
	flight singleflight.Group
}

// newCluster returns a cluster that names workloads by labels first.
func newCluster(client *Client, labels []WorkloadLabel, b *breaker) *cluster {
	return &cluster{breaker: b, client: client, labels: labels, kept: cache.NewLRUExpireCache(knownOwners)}
}

// answer is a remembered answer.
type answer[T any] struct {
	value T
	err   error
}

// remembered returns the answer of a key, or asks for it; callers at the same time share a request.
func remembered[T any](c *cluster, key string, ask func() (T, error)) (T, error) {
	if known, ok := c.kept.Get(key); ok {
		return known.(answer[T]).value, known.(answer[T]).err
	}
	got, _, _ := c.flight.Do(key, func() (any, error) {
		value, err := ask()
		a := answer[T]{value, err}
		switch {
		case err == nil:
			c.kept.Add(key, a, lookAgain)
		case errors.Is(err, errDenied):
			c.kept.Add(key, a, denialLife)
		case isAnswer(err):
			c.kept.Add(key, a, lookAgainSoon)
		}
		return a, nil
	})
	return got.(answer[T]).value, got.(answer[T]).err
}

// ownerOf returns the owner of a pod. sure is false if the chain of owners could not
// be followed to its end: the last known owner is then used. The error is errAbsent or
// errDenied if the API server answers so for the pod, and errFails if it fails for a
// kind of owner: no owner is used then, since the next answer would replace it. Every other
// error means that it does not answer correctly.
func (c *cluster) ownerOf(ctx context.Context, pod Pod) (owner Owner, sure bool, err error) {
	if validation.IsDNS1123Label(pod.Namespace) != nil || validation.IsDNS1123Subdomain(pod.Name) != nil {
		return Owner{}, false, errAbsent // such a name must not get into a path
	}
	object, err := c.object(ctx, podsResource, pod.Namespace, pod.Name)
	if err != nil {
		return Owner{}, false, err
	}
	if owner, named := workloadOf(c.labels, object.Labels); named {
		return owner, true, nil
	}
	owner = Owner{"Pod", pod.Name}
	controller := metav1.GetControllerOfNoCopy(object)
	for range maxOwners {
		if controller == nil {
			return owner, true, nil
		}
		owner = Owner{controller.Kind, controller.Name}
		controller, err = c.controllerOf(ctx, pod.Namespace, controller)
		switch {
		case isAnswer(err):
			return owner, false, nil
		case err != nil:
			return Owner{}, false, err
		}
	}
	return owner, false, nil
}

// controllerOf returns what owns an owner, nil for nothing. The owners of nodes, which own mirror
// pods, are of no interest.
func (c *cluster) controllerOf(ctx context.Context, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
	if kind.Group == "" && kind.Kind == "Node" {
		return nil, nil //nolint:nilnil // documented above
	}
	if of.UID == "" || !isPlain(of.Name) {
		return nil, errUnknown
	}
	return remembered(c, string(of.UID), func() (*metav1.OwnerReference, error) {
		s := subject{of: kind.GroupKind()}
		if !c.enter(s) {
			return nil, errFails
		}
		controller, err := c.ask(ctx, kind, namespace, of)
		switch {
		case err == nil || isAnswer(err):
			c.succeed(s)
		case isOfKind(ctx, err):
			c.fail(s, err)
			err = errFails
		}
		return controller, err
	})
}

// ask asks the API server what owns an owner of a kind.
func (c *cluster) ask(ctx context.Context, kind schema.GroupVersionKind, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	r, err := c.resourceOf(ctx, kind)
	if err != nil {
		return nil, err
	}
	if !r.namespaced {
		namespace = ""
	}
	object, err := c.object(ctx, r, namespace, of.Name)
	if err != nil {
		return nil, err
	}
	if object.UID != of.UID { // another of that name
		return nil, errAbsent
	}
	return metav1.GetControllerOf(object), nil
}

// object asks for the metadata of an object. The API server may answer from memory
// (resource version 0), as it does for kubelets.
func (c *cluster) object(ctx context.Context, r resource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	right := subject{r.GroupResource(), namespace}
	if !c.enter(right) {
		return nil, errDenied
	}
	object := &metav1.PartialObjectMetadata{}
	err := c.client.get(ctx, r.path(namespace, name), url.Values{"resourceVersion": {"0"}}, asMetadata, object)
	switch {
	case apierrors.IsForbidden(err):
		c.fail(right, err)
		return nil, errDenied
	case apierrors.IsNotFound(err):
		err = errAbsent
	case err == nil && object.Name != name:
		err = errors.New("the answer is no such object")
		fallthrough
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", r.GroupResource(), err)
	}
	c.succeed(right)
	return object, err
}

// resource is a kind as the API server's paths name it.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// path returns the path of an object; "" is no namespace.
func (r resource) path(namespace, name string) string {
	path := groupPath(r.GroupVersion())
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource + "/" + name
}

func groupPath(of schema.GroupVersion) string {
	if of.Group == "" {
		return "/api/" + of.Version
	}
	return "/apis/" + of.String()
}

var podsResource = resource{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}

// builtIn are the kinds whose resource need not be asked for: all are of version v1.
var builtIn = map[schema.GroupKind]string{
	{Kind: "Pod"}:                        "pods",
	{Kind: "ReplicationController"}:      "replicationcontrollers",
	{Group: "apps", Kind: "ReplicaSet"}:  "replicasets",
	{Group: "apps", Kind: "Deployment"}:  "deployments",
	{Group: "apps", Kind: "StatefulSet"}: "statefulsets",
	{Group: "apps", Kind: "DaemonSet"}:   "daemonsets",
	{Group: "batch", Kind: "Job"}:        "jobs",
	{Group: "batch", Kind: "CronJob"}:    "cronjobs",
}

// resourceOf returns the resource of a kind; unless it is built in, it asks the API server. The
// error is errUnknown if the kind does not exist.
func (c *cluster) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	if name, ok := builtIn[kind.GroupKind()]; ok {
		return resource{schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: name}, true}, nil
	}
	if validation.IsDNS1123Subdomain(kind.Group) != nil || !isPlain(kind.Version) {
		return resource{}, errUnknown
	}
	return remembered(c, kind.String(), func() (resource, error) {
		var list metav1.APIResourceList
		err := c.client.get(ctx, groupPath(kind.GroupVersion()), nil, asJSON, &list)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return resource{}, fmt.Errorf("%w: %w", errUnknown, err)
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; r.Kind == kind.Kind && isPlain(r.Name) {
				return resource{kind.GroupVersion().WithResource(r.Name), r.Namespaced}, nil
			}
		}
		if err == nil {
			err = fmt.Errorf("%w: %s", errUnknown, kind)
		}
		return resource{}, err
	})
}

// isPlain reports whether a name can be one segment of a path, unlike pods/status, which is
// two.
func isPlain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%?#")
}

// WorkloadLabel is a label of pods whose value names the workload that they belong to.
type WorkloadLabel struct {
	// Key is the key of the label.
	Key string
	// Kind is the kind of the workload. With "", all pods with one name are one workload,
	// whatever owns them.
	Kind string
}

// ParseWorkloadLabel reads KEY or KEY=KIND.
func ParseWorkloadLabel(text string) (WorkloadLabel, error) {
	key, kind, given := strings.Cut(text, "=")
	if wrong := validation.IsQualifiedName(key); wrong != nil {
		return WorkloadLabel{}, fmt.Errorf("%q is not a key of a label; write one such as app.kubernetes.io/name", key)
	}
	if given && validation.IsDNS1035Label(strings.ToLower(kind)) != nil {
		return WorkloadLabel{}, fmt.Errorf("%q is not a kind; write one such as Job, of letters and digits, or the key of the label alone", kind)
	}
	return WorkloadLabel{key, kind}, nil
}

// workloadOf returns the workload that the first key with a value names.
func workloadOf(keys []WorkloadLabel, labels map[string]string) (owner Owner, named bool) {
	for _, l := range keys {
		if name := labels[l.Key]; name != "" {
			return Owner{l.Kind, name}, true
		}
	}
	return Owner{}, false
}

package holders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Owner is the workload of a pod: the topmost in the chain of the controllers that own
// it, such as CronJob and nightly, or Pod and its own name if it has no controller.
type Owner struct{ Kind, Name string }

// Pod names a pod.
type Pod struct{ Namespace, Name string }

// podUID is the UID of a pod, as a key.
type podUID string

const (
	// maxOwners ends the walk up from a pod. The longest chain in use has 7: Pod,
	// ReplicaSet, Deployment, Revision, Configuration, Service, InferenceService.
	maxOwners = 10
	// knownOwners is how many owners and kinds are remembered.
	knownOwners = 4096
	asJSON      = "application/json"
	asMetadata  = asJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + asJSON
)

// Why an object is not available although the API server answers: there is no such object or kind; it
// denies or fails to give it. Every other error means that it does not answer correctly.
var (
	errAbsent = errors.New("there is no such object, or no such kind")
	errDenied = errors.New("the API server does not give it")
)

// isAnswer reports whether err is the API server's answer about an object.
func isAnswer(err error) bool { return errors.Is(err, errAbsent) || errors.Is(err, errDenied) }

// cluster finds owners by asking the API server for the metadata of objects, one by one. It
// is safe for concurrent use.
type cluster struct {
	*breaker
	client *Client
	labels []WorkloadLabel // that name workloads before owners do

	kept  *cache.LRUExpireCache // answers by UID, or by kind
	asked singleflight.Group    // for these
}

func newCluster(client *Client, labels []WorkloadLabel, b *breaker) *cluster {
	return &cluster{breaker: b, client: client, labels: labels, kept: cache.NewLRUExpireCache(knownOwners)}
}

// answer is a remembered answer.
type answer[T any] struct {
	value T
	err   error
}

// remembered returns the answer of a key, or asks for it, once for all who want it at a time.
func remembered[T any](c *cluster, key string, ask func() (T, error)) (T, error) {
	known, _, _ := c.asked.Do(key, func() (any, error) {
		if known, ok := c.kept.Get(key); ok {
			return known, nil
		}
		value, err := ask()
		if err == nil {
			c.kept.Add(key, answer[T]{value, nil}, lookAgain)
		} else if isAnswer(err) {
			c.kept.Add(key, answer[T]{value, err}, lookAgainSoon)
		}
		return answer[T]{value, err}, nil
	})
	return known.(answer[T]).value, known.(answer[T]).err
}

// ownerOf returns the owner of a pod. sure is false if the chain of owners could not
// be followed to its end: the last known owner is then used. The error is errAbsent or
// errDenied if the API server answers so for the pod. Every other
// error means that it does not answer correctly.
func (c *cluster) ownerOf(ctx context.Context, pod Pod) (owner Owner, sure bool, err error) {
	if validation.IsDNS1123Label(pod.Namespace) != nil || validation.IsDNS1123Subdomain(pod.Name) != nil {
		return Owner{}, false, errAbsent // such a name must not get into a path
	}
	object, err := c.object(ctx, podsResource, pod.Namespace, pod.Name)
	if err != nil {
		return Owner{}, false, err
	}
	c.kept.Add(podUID(object.UID), pod, lookAgain+lookAgainSoon)
	for _, l := range c.labels {
		if name := object.Labels[l.Key]; name != "" {
			return Owner{l.Kind, name}, true, nil
		}
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
		return nil, errAbsent
	}
	return remembered(c, string(of.UID), func() (*metav1.OwnerReference, error) {
		what := kind.GroupKind().String()
		if !c.allows(what) {
			return nil, errDenied
		}
		controller, err := c.ask(ctx, kind, namespace, of)
		switch {
		case err == nil || isAnswer(err):
			c.succeed(what)
		case isOfKind(ctx, err):
			c.fail(what, canonical.Note{
				Cause: fmt.Sprintf("the Kubernetes API server fails for objects of kind %s, so the workloads of their pods are not fully known: %v", what, err),
				Remedy: fmt.Sprintf("check whether kubectl get %s -A answers: "+
					"the conversion webhook of its CustomResourceDefinition may be broken, or its APIService unavailable", what),
			})
			err = errDenied
		}
		return controller, err
	})
}

// isOfKind reports whether an error is due to the requested kind, and not to the API server,
// which has just answered for the pod.
func isOfKind(ctx context.Context, err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	_, slow := errors.AsType[canonical.TimedOut](err)
	return slow && ctx.Err() == nil
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
	path, right := groupPath(r.GroupVersion()), "the right to get "+r.GroupResource().String()
	if namespace != "" {
		path += "/namespaces/" + namespace
		right += " in namespace " + namespace
	}
	if !c.allows(right) {
		return nil, errDenied
	}
	object := &metav1.PartialObjectMetadata{}
	err := c.client.get(ctx, path+"/"+r.Resource+"/"+name, url.Values{"resourceVersion": {"0"}}, asMetadata, object)
	switch {
	case apierrors.IsForbidden(err):
		c.fail(right, canonical.Note{
			Cause:  "the Kubernetes API server denies " + right + ", so the workloads of pods are not fully known",
			Remedy: fmt.Sprintf("grant it as deploy/kubernetes/rbac.yaml does: {apiGroups: [%q], resources: [%s], verbs: [get]}", r.Group, r.Resource),
		})
		return nil, errDenied
	case apierrors.IsNotFound(err):
		err = errAbsent
	case err == nil && object.Name != name:
		return nil, fmt.Errorf("get %s: the answer is no such object", r.GroupResource())
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

var podsResource = resource{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}

func groupPath(of schema.GroupVersion) string {
	if of.Group == "" {
		return "/api/" + of.Version
	}
	return "/apis/" + of.String()
}

// resourceOf returns the resource of a kind. Kubernetes' own have regular names; of others, it asks
// the API server.
func (c *cluster) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	if !isPlain(kind.Version) || !isPlain(kind.Kind) {
		return resource{}, errAbsent
	}
	if slices.Contains([]string{"", "apps", "batch"}, kind.Group) {
		regular, _ := meta.UnsafeGuessKindToResource(kind)
		return resource{regular, true}, nil
	}
	if validation.IsDNS1123Subdomain(kind.Group) != nil {
		return resource{}, errAbsent
	}
	return remembered(c, kind.String(), func() (resource, error) {
		var list metav1.APIResourceList
		err := c.client.get(ctx, groupPath(kind.GroupVersion()), nil, asJSON, &list)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return resource{}, err
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; r.Kind == kind.Kind && isPlain(r.Name) {
				return resource{kind.GroupVersion().WithResource(r.Name), r.Namespaced}, nil
			}
		}
		return resource{}, errAbsent
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

package holders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
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
	// knownOwners and knownKinds are how many of each are remembered.
	knownOwners = 4096
	knownKinds  = 256
	// ownerLife is how long the owner of an owner is remembered: it rarely changes, except
	// by adoption.
	ownerLife = 10 * time.Minute
	// denialLife is how long a denied request is not repeated.
	denialLife = 15 * time.Second
)

// Why an object is not available although the API server answers. Every other error means
// that it does not answer correctly.
var (
	errAbsent  = errors.New("there is no such object")
	errDenied  = errors.New("the API server denies it")
	errUnknown = errors.New("the API server does not know this kind")
)

// isAnswer reports whether err is the API server's answer about an object. errTroubled is
// not: another request may get an answer.
func isAnswer(err error) bool {
	return errors.Is(err, errAbsent) || errors.Is(err, errDenied) || errors.Is(err, errUnknown)
}

// cluster finds owners by asking the API server for the metadata of objects, one by one. It
// is safe for concurrent use.
type cluster struct {
	objects metadata.Interface
	web     rest.Interface // for discovery
	labels  []WorkloadLabel
	obstacles

	kinds  *answers[schema.GroupVersionKind, resource]
	owners *answers[types.UID, *metav1.OwnerReference] // of owners; nil if nothing owns one
}

// obstacles are the reasons why an API server that answers does not return an object.
type obstacles struct {
	denials  *denials
	troubles *troubles
}

func newObstacles(logger *slog.Logger) obstacles {
	return obstacles{newDenials(logger), newTroubles(logger)}
}

// newCluster returns a cluster that names workloads by labels first.
func newCluster(client *Client, labels []WorkloadLabel, in obstacles) (*cluster, error) {
	bounded := client.bounded()
	objects, err := metadata.NewForConfigAndClient(client.Config, bounded)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the Kubernetes API server: %w; correct the kubeconfig", err)
	}
	web, err := rest.UnversionedRESTClientForConfigAndClient(metadata.ConfigFor(client.Config), bounded)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the Kubernetes API server: %w; correct the kubeconfig", err)
	}
	lives := func(err error) time.Duration {
		switch {
		case err == nil:
			return ownerLife
		case errors.Is(err, errDenied):
			return denialLife
		case isAnswer(err):
			return lookAgainSoon
		}
		return 0
	}
	return &cluster{
		objects: objects, web: web, labels: labels, obstacles: in,
		kinds:  newAnswers[schema.GroupVersionKind, resource](knownKinds, lives),
		owners: newAnswers[types.UID, *metav1.OwnerReference](knownOwners, lives),
	}, nil
}

// ownerOf returns the owner of a pod. sure is false if the chain of owners could not
// be followed to its end: the last known owner is then used. The error is errAbsent or
// errDenied if the API server answers so for the pod, and errTroubled if it fails for a
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
	return c.top(ctx, pod, metav1.GetControllerOfNoCopy(object))
}

// top walks up from the controller of a pod, nil for none.
func (c *cluster) top(ctx context.Context, pod Pod, controller *metav1.OwnerReference) (owner Owner, sure bool, err error) {
	owner = Owner{"Pod", pod.Name}
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

// controllerOf returns what owns an owner, nil for nothing.
func (c *cluster) controllerOf(ctx context.Context, namespace string, of *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	kind := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
	if kind == nodeKind {
		return nil, nil //nolint:nilnil // documented above
	}
	if of.UID == "" || !isPlain(of.Name) {
		return nil, errUnknown
	}
	return c.owners.get(of.UID, func() (*metav1.OwnerReference, error) {
		if !c.troubles.enter(kind.GroupKind(), time.Now()) {
			return nil, errTroubled
		}
		controller, err := c.ask(ctx, kind, namespace, of)
		return controller, c.troubles.take(ctx, kind.GroupKind(), err)
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
	right := right{r.GroupResource(), namespace}
	if c.denials.isDenied(right, time.Now()) {
		return nil, errDenied
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	object, err := c.objects.Resource(r.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsForbidden(err):
		c.denials.deny(right, time.Now())
		return nil, errDenied
	case apierrors.IsNotFound(err):
		err = errAbsent
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", r.GroupResource(), err)
	}
	c.denials.grant(right)
	return object, err
}

// document asks for one of the documents that list the API server's resources.
func (c *cluster) document(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return c.web.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
}

package holders

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Access is a verb on the objects of a resource, in all namespaces if
// Namespace is "".
type Access struct{ Verb, Group, Resource, Namespace string }

// String returns the access as people write it.
func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	return a.Verb + " " + resource
}

// reviews is the path at which an API server says what its client may do. A request changes
// nothing: the review is answered and not kept.
const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// Denied returns the elements of all that the API server denies.
func (c *Client) Denied(ctx context.Context, all []Access) (denied []Access, err error) {
	web, err := rest.UnversionedRESTClientForConfigAndClient(metadata.ConfigFor(c.Config), c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of the Kubernetes API server: %w; correct the kubeconfig", err)
	}
	for _, a := range all {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": map[string]string{"verb": a.Verb, "group": a.Group, "resource": a.Resource, "namespace": a.Namespace}},
		})
		if err != nil {
			return nil, err
		}
		answer, err := web.Post().AbsPath(reviews).SetHeader("Accept", "application/json").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("cannot get the proxy's rights from the Kubernetes API server: %w; check that it is reachable and that the service account's token is valid", err)
		}
		var review struct{ Status struct{ Allowed bool } }
		if err := json.Unmarshal(answer, &review); err != nil {
			return nil, fmt.Errorf("the Kubernetes API server does not answer with a review: %w; see what answers at %s", err, c.Config.Host)
		}
		if !review.Status.Allowed {
			denied = append(denied, a)
		}
	}
	return denied, nil
}

package holders

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// resource is the API path of objects of a kind.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// podsResource is the resource of pods.
var podsResource = resource{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}

// builtIn are the resources of kinds that every cluster has, and that need no discovery.
var builtIn = map[schema.GroupVersionKind]resource{
	{Version: "v1", Kind: "Pod"}:                        podsResource,
	{Version: "v1", Kind: "ReplicationController"}:      inNamespace("", "replicationcontrollers"),
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:  inNamespace("apps", "replicasets"),
	{Group: "apps", Version: "v1", Kind: "Deployment"}:  inNamespace("apps", "deployments"),
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: inNamespace("apps", "statefulsets"),
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   inNamespace("apps", "daemonsets"),
	{Group: "batch", Version: "v1", Kind: "Job"}:        inNamespace("batch", "jobs"),
	{Group: "batch", Version: "v1", Kind: "CronJob"}:    inNamespace("batch", "cronjobs"),
	nodeKind: {schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false},
}

// nodeKind is the owner of mirror pods, which the kubelet runs from files. The owners of a node
// are of no interest.
var nodeKind = schema.GroupVersionKind{Version: "v1", Kind: "Node"}

func inNamespace(group, name string) resource {
	return resource{schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, true}
}

// resourceOf returns the resource of a kind; unless it is built in, it asks the API server for
// the group. If the server no longer has the version, which an owner reference may outlive, it
// uses the version that the server prefers. The error is errUnknown if the kind does not exist.
func (c *cluster) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	if r, ok := builtIn[kind]; ok {
		return r, nil
	}
	if validation.IsDNS1123Subdomain(kind.Group) != nil || !isPlain(kind.Version) {
		return resource{}, errUnknown
	}
	return c.kinds.get(kind, func() (resource, error) {
		r, err := c.discover(ctx, kind)
		if apierrors.IsNotFound(err) {
			if kind.Version, err = c.preferredVersion(ctx, kind.Group); err == nil {
				r, err = c.discover(ctx, kind)
			}
		}
		if err != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return r, err
	})
}

// discover asks which resource of a version of a group has a kind.
func (c *cluster) discover(ctx context.Context, kind schema.GroupVersionKind) (resource, error) {
	body, err := c.document(ctx, "/apis/"+kind.Group+"/"+kind.Version)
	if err != nil {
		return resource{}, err
	}
	return parseResources(body, kind)
}

// parseResources finds the resource of a kind in an APIResourceList.
func parseResources(body []byte, kind schema.GroupVersionKind) (resource, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return resource{}, fmt.Errorf("the API server's list of resources cannot be read: %w", err)
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if r.Kind == kind.Kind && isPlain(r.Name) {
			return resource{kind.GroupVersion().WithResource(r.Name), r.Namespaced}, nil
		}
	}
	return resource{}, fmt.Errorf("%w: %s", errUnknown, kind)
}

// preferredVersion asks for the version of a group that its clients should use.
func (c *cluster) preferredVersion(ctx context.Context, group string) (string, error) {
	body, err := c.document(ctx, "/apis/"+group)
	if err != nil {
		return "", err
	}
	return parseGroup(body)
}

// parseGroup finds the preferred version in an APIGroup.
func parseGroup(body []byte) (string, error) {
	var group metav1.APIGroup
	if err := json.Unmarshal(body, &group); err != nil {
		return "", fmt.Errorf("the API server's list of versions cannot be read: %w", err)
	}
	if version := group.PreferredVersion.Version; isPlain(version) {
		return version, nil
	}
	return "", errUnknown
}

// isPlain reports whether a name can be one segment of a path, unlike pods/status, which is
// two.
func isPlain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%?#")
}

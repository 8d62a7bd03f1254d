package holders

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// right is the right to get the objects of a resource in a namespace.
type right struct {
	resource  schema.GroupResource
	namespace string // "" for objects outside of namespaces
}

// knownDenials is how many missing rights are remembered. Others are requested each time.
const knownDenials = 1024

// denials are the rights that the API server denies us. Each resource is logged once, however
// many namespaces and objects have it. A right that is no longer needed is forgotten. It is safe
// for concurrent use.
type denials struct {
	logger *slog.Logger

	mu    sync.Mutex
	until map[right]time.Time // when to ask again
}

func newDenials(logger *slog.Logger) *denials {
	return &denials{logger: logger, until: map[right]time.Time{}}
}

// isDenied reports whether a request would be denied again now.
func (d *denials) isDenied(r right, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now.Before(d.until[r])
}

// deny notes that we do not have a right.
func (d *denials) deny(r right, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(now)
	if d.count(r.resource) == 0 {
		n := note(r.resource, r.namespace, 1)
		d.logger.Warn("the holders of GPUs are not fully known", "cause", n.Cause, "remedy", n.Remedy)
	}
	if _, known := d.until[r]; known || len(d.until) < knownDenials {
		d.until[r] = now.Add(denialLife)
	}
}

// grant notes that we have a right.
func (d *denials) grant(r right) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, denied := d.until[r]; !denied {
		return
	}
	delete(d.until, r)
	if d.count(r.resource) == 0 {
		d.logger.Info("the Kubernetes API server now grants a right that it denied", "verb", "get", "resource", r.resource.String())
	}
}

// count returns in how many namespaces a resource is denied.
func (d *denials) count(of schema.GroupResource) (n int) {
	for r := range d.until {
		if r.resource == of {
			n++
		}
	}
	return n
}

// forget forgets rights that are no longer needed, as after their pods are gone: a right that
// is still needed is requested again sooner. The caller holds mu.
func (d *denials) forget(now time.Time) {
	maps.DeleteFunc(d.until, func(_ right, until time.Time) bool { return now.Sub(until) > outOfUse })
}

// notes returns what to grant, one note for each resource.
func (d *denials) notes() (notes []canonical.Note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(time.Now())
	rights := make([]right, 0, len(d.until))
	for r := range d.until {
		rights = append(rights, r)
	}
	slices.SortFunc(rights, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.resource.Group, b.resource.Group), cmp.Compare(a.resource.Resource, b.resource.Resource), cmp.Compare(a.namespace, b.namespace))
	})
	for i, r := range rights {
		if i == 0 || rights[i-1].resource != r.resource {
			notes = append(notes, note(r.resource, r.namespace, d.count(r.resource)))
		}
	}
	return notes
}

// note returns what is missing without a right, in one namespace or in several.
func note(r schema.GroupResource, namespace string, namespaces int) canonical.Note {
	where := ""
	switch {
	case namespace == "":
	case namespaces == 1:
		where = " in namespace " + namespace
	default:
		where = fmt.Sprintf(" in %d namespaces, %s among them", namespaces, namespace)
	}
	lacks := "their owners are not known"
	if r == podsResource.GroupResource() {
		lacks = "the workloads of pods are not known"
	}
	return canonical.Note{
		Cause:  fmt.Sprintf("the Kubernetes API server denies the right to get %s%s: %s", r, where, lacks),
		Remedy: fmt.Sprintf("grant it as deploy/kubernetes/rbac.yaml does: {apiGroups: [%q], resources: [%s], verbs: [get]}", r.Group, r.Resource),
	}
}

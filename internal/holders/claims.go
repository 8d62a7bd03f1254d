package holders

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// draDriver is NVIDIA's driver of dynamic resource allocation for GPUs.
	draDriver = "gpu.nvidia.com"
	// resourceAPI is the API of dynamic resource allocation.
	resourceAPI = "/apis/resource.k8s.io/v1"
)

// claims finds the devices behind the claims of pods (dynamic resource allocation): the
// kubelet names them by pool and device, and the node's ResourceSlices describe
// these. While all are known, nothing is requested: the entry of a held device does not change.
// ResourceSlices are listed, not watched: a watch on each node would cost the API server more than
// a list whenever a pod gets a claim. It belongs to the goroutine of Kubelet.Run.
type claims struct {
	client func() (*Client, error)
	node   string
	first  time.Duration // pause between requests for unknown devices, which doubles up to longestPause
	within time.Duration // the time for an answer
	logger *slog.Logger

	api     *Client // nil before the first claim
	known   map[claim]claimedDevice
	wanted  map[claim]bool // what was requested last
	pause   time.Duration
	due     time.Time
	problem *canonical.Failure // why devices are unknown
}

// poolDevice is the name of a device among the ResourceSlices of a node.
type poolDevice struct{ pool, device string }

// claim is a device of a claim.
type claim struct {
	namespace, name string
	device          poolDevice
}

// claimedDevice is the device of a claim.
type claimedDevice struct {
	reference
	watched bool // not held: adminAccess
	unsure  bool // whether it is watched: the claim may not be read
}

// holds returns who holds the known devices of claims, and how many are unknown.
func (c *claims) holds(all []claimed) (holds []hold, unread int) {
	for _, d := range all {
		if device, known := c.known[d.claim]; !known {
			unread++
		} else if !device.watched {
			holds = append(holds, hold{d.Workload, device.reference})
		}
	}
	return holds, unread
}

// isDue reports whether to request devices now, and forgets claims that are gone.
func (c *claims) isDue(all []claimed) bool {
	known, wanted, news := map[claim]claimedDevice{}, map[claim]bool{}, false
	for _, d := range all {
		device, is := c.known[d.claim]
		if is {
			known[d.claim] = device
		}
		if !is || device.unsure {
			wanted[d.claim] = true
			news = news || !c.wanted[d.claim]
		}
	}
	c.known, c.wanted = known, wanted
	now := time.Now()
	switch {
	case len(wanted) == 0:
		c.problem = nil
		return false
	case news:
		c.pause = c.first
	case now.Before(c.due):
		return false
	default:
		c.pause = min(2*c.pause, longestPause)
	}
	c.due = now.Add(c.pause)
	return true
}

// ask finds the wanted devices. ok is false if there was no answer.
func (c *claims) ask(ctx context.Context) (ok bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.within, canonical.TimedOut(c.within))
	defer cancel()
	err := c.find(ctx)
	if err == nil {
		if c.problem != nil {
			c.logger.Info("the GPUs of claims can be looked up again")
			c.problem = nil
		}
		return true
	}
	f := &canonical.Failure{Cause: err.Error(), Remedy: "check whether the Kubernetes API server can be reached from this pod"}
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		f.Cause, f.Remedy = "ResourceSlices may not be read", "grant the service account list on resourceslices.resource.k8s.io: deploy/kubernetes/rbac.yaml"
	case apierrors.IsNotFound(err):
		f.Cause, f.Remedy = "the Kubernetes API server has no ResourceSlices", "the v1 API of dynamic resource allocation needs Kubernetes 1.34 or later"
	}
	if c.problem == nil {
		c.logger.Warn("cannot look up the GPUs of claims", "cause", f.Cause, "remedy", f.Remedy)
	}
	c.problem = f
	return false
}

// notes returns the present problems.
func (c *claims) notes() (all []canonical.Note) {
	if f := c.problem; f != nil {
		all = append(all, canonical.Note{Cause: "the GPUs of new claims are not known: " + f.Cause, Remedy: f.Remedy})
	}
	for _, device := range c.known {
		if device.unsure {
			return append(all, canonical.Note{
				Cause:  "pods that have a claim for watching GPUs (adminAccess) count as their holders: ResourceClaims may not be read",
				Remedy: "grant the service account get on resourceclaims.resource.k8s.io: deploy/kubernetes/rbac.yaml",
			})
		}
	}
	return all
}

// find requests the wanted devices.
func (c *claims) find(ctx context.Context) (err error) {
	if c.api == nil {
		if c.api, err = c.client(); err != nil {
			return err
		}
	}
	node := c.node
	for w := range c.wanted { // drivers of node-local devices name the pool after the node
		node = cmp.Or(node, w.device.pool)
	}
	devices, err := c.devices(ctx, node)
	if err != nil {
		return err
	}
	for w := range c.wanted {
		r, is := devices[w.device]
		if known, was := c.known[w]; was { // even if the driver withdrew it, as for an unhealthy device
			r, is = known.reference, true
		}
		if !is {
			continue
		}
		watched, err := c.isWatched(ctx, w)
		denied := apierrors.IsForbidden(err)
		if err != nil && !denied && !apierrors.IsNotFound(err) { // if not found, it has just gone
			return fmt.Errorf("claim %s/%s: %w", w.namespace, w.name, err)
		}
		c.known[w] = claimedDevice{r, watched, denied}
	}
	return nil
}

// resourceSlices is the part of a list of ResourceSlices that is read.
type resourceSlices struct {
	Items []struct {
		Spec struct {
			Driver string
			Pool   struct {
				Name       string
				Generation int64
			}
			Devices []struct {
				Name       string
				Attributes map[string]struct{ String string }
			}
		}
	}
}

// devices returns the devices of the node's ResourceSlices. Of each pool, the newest generation
// counts: a driver that changes its devices replaces all of its slices, one by one. A device
// without a UUID, such as a MIG device that is made on demand, is none that is read.
func (c *claims) devices(ctx context.Context, node string) (map[poolDevice]reference, error) {
	var list resourceSlices
	query := url.Values{"fieldSelector": {"spec.nodeName=" + node + ",spec.driver=" + draDriver}}
	if err := c.api.get(ctx, resourceAPI+"/resourceslices", query, asJSON, &list); err != nil {
		return nil, err
	}
	newest := map[string]int64{}
	for _, s := range list.Items {
		newest[s.Spec.Pool.Name] = max(newest[s.Spec.Pool.Name], s.Spec.Pool.Generation)
	}
	devices := map[poolDevice]reference{}
	for _, s := range list.Items {
		for _, d := range s.Spec.Devices {
			if s.Spec.Pool.Generation == newest[s.Spec.Pool.Name] {
				uuid := cmp.Or(d.Attributes["uuid"].String, d.Attributes[draDriver+"/uuid"].String)
				devices[poolDevice{s.Spec.Pool.Name, d.Name}] = reference{uuid: strings.ToLower(uuid)}
			}
		}
	}
	return devices, nil
}

// isWatched reports whether a claim gives access to its device only for watching it.
func (c *claims) isWatched(ctx context.Context, of claim) (bool, error) {
	if !isPlain(of.namespace) || !isPlain(of.name) {
		return false, nil
	}
	var object struct {
		Status struct {
			Allocation struct {
				Devices struct {
					Results []struct {
						Driver, Pool, Device string
						AdminAccess          bool
					}
				}
			}
		}
	}
	if err := c.api.get(ctx, resourceAPI+"/namespaces/"+of.namespace+"/resourceclaims/"+of.name, nil, asJSON, &object); err != nil {
		return false, err
	}
	for _, r := range object.Status.Allocation.Devices.Results {
		if r.AdminAccess && r.Driver == draDriver && of.device == (poolDevice{r.Pool, r.Device}) {
			return true, nil
		}
	}
	return false, nil
}

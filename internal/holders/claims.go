package holders

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// draDriver is NVIDIA's driver of dynamic resource allocation for GPUs.
	draDriver = "gpu.nvidia.com"
	// resourceAPI is the API of dynamic resource allocation.
	resourceAPI = "/apis/resource.k8s.io/"
	// longestClaimsPause bounds the pause between requests for unknown devices, which doubles.
	longestClaimsPause = time.Minute
)

// claims finds the devices behind the claims of pods (dynamic resource allocation): the
// kubelet names them by driver, pool and device, and the node's ResourceSlices describe
// these. While all are known, nothing is requested: the entry of a held device does not change.
// ResourceSlices are listed, not watched: a watch on each node would cost the API server more than
// a list whenever a pod gets a claim. It belongs to the goroutine of Kubelet.Run.
type claims struct {
	client func() (*Client, error)
	node   string
	first  time.Duration // pause
	within time.Duration // the time for an answer
	logger *slog.Logger

	api     *Client // nil before the first claim
	known   map[claim]claimedDevice
	unknown map[claim]bool // when they were requested
	denied  bool           // claims may not be read
	pause   time.Duration
	due     time.Time
	problem *canonical.Failure // why devices are unknown
}

// poolDevice is the name of a device among the ResourceSlices of a node.
type poolDevice struct{ driver, pool, device string }

// claim is a device of a claim.
type claim struct {
	namespace, name string
	device          poolDevice
}

// claimedDevice is the device of a claim.
type claimedDevice struct {
	reference
	watched bool // not held: adminAccess
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
	known, unknown, news := map[claim]claimedDevice{}, map[claim]bool{}, false
	for _, d := range all {
		if device, is := c.known[d.claim]; is {
			known[d.claim] = device
			continue
		}
		unknown[d.claim] = true
		news = news || !c.unknown[d.claim]
	}
	c.known, c.unknown = known, unknown
	if c.denied = c.denied && len(all) > 0; len(unknown) == 0 && !c.denied {
		c.problem = nil
	}
	now := time.Now()
	switch {
	case news:
		c.pause = c.first
	case now.Before(c.due) || len(unknown) == 0 && !c.denied:
		return false
	default:
		c.pause = max(min(2*c.pause, longestClaimsPause), c.first)
	}
	c.due = now.Add(c.pause)
	return true
}

// ask finds the devices of the claims that are unknown. ok is false if there was no answer.
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
		f.Cause, f.Remedy = "the Kubernetes API server has no ResourceSlices", "dynamic resource allocation needs Kubernetes 1.32 or later"
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
	if c.denied {
		all = append(all, canonical.Note{
			Cause:  "pods that have a claim for watching GPUs (adminAccess) count as their holders: ResourceClaims may not be read",
			Remedy: "grant the service account get on resourceclaims.resource.k8s.io: deploy/kubernetes/rbac.yaml",
		})
	}
	return all
}

// find requests the devices of the claims that are unknown, or all if claims could not be read.
func (c *claims) find(ctx context.Context) (err error) {
	if c.api == nil {
		if c.api, err = c.client(); err != nil {
			return err
		}
	}
	node := c.node
	for w := range c.unknown { // drivers of node-local devices name the pool after the node
		node = cmp.Or(node, w.device.pool)
	}
	version, devices, err := c.devices(ctx, node)
	if err != nil {
		return err
	}
	wanted := c.unknown
	if c.denied {
		for w := range c.known {
			wanted[w] = true
		}
	}
	c.denied = false
	for w := range wanted {
		device, known := devices[w.device]
		if was, is := c.known[w]; is { // even if the driver withdrew it, as for an unhealthy device
			device, known = was.reference, true
		}
		if !known {
			continue
		}
		watched, err := c.isWatched(ctx, version, w)
		switch {
		case apierrors.IsForbidden(err):
			c.denied = true
		case err != nil && !apierrors.IsNotFound(err): // it has just gone
			return fmt.Errorf("claim %s/%s: %w", w.namespace, w.name, err)
		}
		c.known[w] = claimedDevice{device, watched}
	}
	return nil
}

// devices returns the devices of the node's ResourceSlices, by the newest version of the API that
// the server has: all are read alike. Of each pool, the newest generation counts: a driver that
// changes its devices replaces all of its slices, one by one.
func (c *claims) devices(ctx context.Context, node string) (version string, devices map[poolDevice]reference, err error) {
	var list struct{ Items []resourceSlice }
	for _, version = range []string{"v1", "v1beta2", "v1beta1"} {
		err = c.api.get(ctx, resourceAPI+version+"/resourceslices", url.Values{"fieldSelector": {"spec.nodeName=" + node}}, asJSON, &list)
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	ours := slices.DeleteFunc(list.Items, func(s resourceSlice) bool { return s.Spec.Driver != draDriver })
	newest := map[string]int64{}
	for _, s := range ours {
		newest[s.Spec.Pool.Name] = max(newest[s.Spec.Pool.Name], s.Spec.Pool.Generation)
	}
	devices = map[poolDevice]reference{}
	for _, s := range ours {
		for _, d := range s.Spec.Devices {
			at := poolDevice{s.Spec.Driver, s.Spec.Pool.Name, d.Name}
			if r, ok := d.reference(at); ok && s.Spec.Pool.Generation == newest[s.Spec.Pool.Name] {
				devices[at] = r
			}
		}
	}
	return version, devices, err
}

// isWatched reports whether a claim gives access to its device only for watching it.
func (c *claims) isWatched(ctx context.Context, version string, of claim) (bool, error) {
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
	path := resourceAPI + version + "/namespaces/" + of.namespace + "/resourceclaims/" + of.name
	if err := c.api.get(ctx, path, nil, asJSON, &object); err != nil {
		return false, err
	}
	for _, r := range object.Status.Allocation.Devices.Results {
		if r.AdminAccess && of.device == (poolDevice{r.Driver, r.Pool, r.Device}) {
			return true, nil
		}
	}
	return false, nil
}

// resourceSlice is the part of a ResourceSlice that is read.
type resourceSlice struct {
	Spec struct {
		Driver string
		Pool   struct {
			Name       string
			Generation int64
		}
		Devices []sliceDevice
	}
}

type sliceDevice struct {
	Name       string
	Attributes attributes
	Basic      struct{ Attributes attributes } // in v1beta1
}

// attributes are keyed by name, with or without the domain of the driver.
type attributes map[string]struct{ String string }

// text returns the value of an attribute, in lower case; "" for none.
func (d *sliceDevice) text(name string) string {
	for _, all := range [...]attributes{d.Attributes, d.Basic.Attributes} {
		if v := cmp.Or(all[name].String, all[draDriver+"/"+name].String); v != "" {
			return strings.ToLower(v)
		}
	}
	return ""
}

// reference returns the device that d is; ok is false if d does not identify one.
func (d *sliceDevice) reference(at poolDevice) (r reference, ok bool) {
	r.uuid = d.text("uuid")
	if d.text("type") != "mig" && !strings.HasPrefix(r.uuid, migPrefix) {
		return reference{uuid: r.uuid}, isUUID(r.uuid, gpuPrefix)
	}
	r.parent, r.profile = d.text("parentUUID"), normalProfile(d.text("profile"))
	if r.uuid == "" {
		r.uuid = migPrefix + at.pool + "/" + at.device // its name distinguishes it from others
	}
	return r, strings.HasPrefix(r.uuid, migPrefix)
}

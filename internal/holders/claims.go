package holders

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
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
	// claimsRest and claimsRetry bound the pause between requests, which doubles while the claims
	// do not change, and while there is no answer. Drivers publish new devices a little later.
	claimsRest, claimsRetry = 10 * time.Minute, time.Minute
	// maxPools bounds the pools that are requested if the node's name is unknown.
	maxPools = 4
)

// claims finds the devices behind the claims of pods (dynamic resource allocation): the
// kubelet names them by driver, pool and device, and the node's ResourceSlices describe
// these. While no pod has a claim, nothing is requested. ResourceSlices are listed, not
// watched: their entry for a held device does not change, a claim of a new one is
// looked up at once, and a watch on each node would cost the API server more than a list
// whenever the claims change. It belongs to the goroutine of Kubelet.Run.
type claims struct {
	client func() (*Client, error)
	node   string
	first  time.Duration // pause
	within time.Duration // the time for an answer
	logger *slog.Logger

	api      *Client // nil before the first claim
	version  string  // of the server's API
	wanted   map[claim]bool
	resolved map[claim]resolution
	watchers map[claim]map[poolDevice]bool // by claim, without its device
	pause    time.Duration
	due      time.Time
	failed   bool
	notes    []canonical.Note
}

// poolDevice is the name of a device among the ResourceSlices of a node.
type poolDevice struct{ driver, pool, device string }

// claim is a device of a claim.
type claim struct {
	namespace, name string
	device          poolDevice
}

// whole returns the claim of a device.
func (c claim) whole() claim { return claim{namespace: c.namespace, name: c.name} }

// resolution is the device of a claim.
type resolution struct {
	reference
	known bool
	// watches is set if the device is not held: adminAccess.
	watches bool
}

// holds returns who holds the known devices of claims, and how many are unknown.
func (c *claims) holds(all []claimed) (holds []hold, unread int) {
	for _, d := range all {
		switch r := c.resolved[d.claim]; {
		case r.watches:
		case r.known:
			holds = append(holds, hold{d.Workload, r.reference})
		default:
			unread++
		}
	}
	return holds, unread
}

// isDue reports whether to request the devices of claims now.
func (c *claims) isDue(all []claimed) bool {
	wanted := make(map[claim]bool, len(all))
	for _, d := range all {
		wanted[d.claim] = true
	}
	now := time.Now()
	switch {
	case len(wanted) == 0:
		*c = claims{client: c.client, node: c.node, first: c.first, within: c.within, logger: c.logger, api: c.api}
		return false
	case !maps.Equal(wanted, c.wanted):
		c.wanted, c.pause = wanted, c.first
	case now.Before(c.due):
		return false
	default:
		c.pause = min(2*c.pause, claimsRest)
	}
	c.due = now.Add(c.pause)
	return true
}

// ask finds the devices of the wanted claims. The error is nil or a *canonical.Failure.
func (c *claims) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.within, canonical.TimedOut(c.within))
	defer cancel()
	denied := false
	err := c.resolve(ctx, &denied)
	if err == nil {
		if c.failed {
			c.logger.Info("the GPUs of claims can be looked up again")
		}
		c.failed, c.notes = false, nil
		if denied {
			c.notes = []canonical.Note{{
				Cause:  "pods that have a claim for watching GPUs (adminAccess) count as their holders: ResourceClaims may not be read",
				Remedy: "grant the service account get on resourceclaims.resource.k8s.io: deploy/kubernetes/rbac.yaml",
			}}
		}
		return nil
	}
	n := canonical.Note{Cause: err.Error(), Remedy: "check whether the Kubernetes API server can be reached from this pod"}
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		n = canonical.Note{Cause: "ResourceSlices may not be read", Remedy: "grant the service account list on resourceslices.resource.k8s.io: deploy/kubernetes/rbac.yaml"}
	case apierrors.IsNotFound(err):
		n.Cause, n.Remedy = "the Kubernetes API server has no ResourceSlices", "dynamic resource allocation needs Kubernetes 1.32 or later"
	}
	if !c.failed {
		c.logger.Warn("cannot look up the GPUs of claims", "cause", n.Cause, "remedy", n.Remedy)
	}
	n.Cause = "the GPUs of new claims are not known: " + n.Cause
	c.failed, c.notes = true, []canonical.Note{n}
	c.due = time.Now().Add(min(c.pause, max(claimsRetry, c.first)))
	return err
}

// resolve requests the devices of the wanted claims. denied is set if claims may not be read.
func (c *claims) resolve(ctx context.Context, denied *bool) error {
	if c.api == nil {
		api, err := c.client()
		if err != nil {
			return err
		}
		c.api = api
	}
	devices := map[poolDevice]reference{}
	for _, node := range c.nodes() {
		all, err := c.slices(ctx, node)
		if err != nil {
			return err
		}
		maps.Copy(devices, devicesOf(all))
	}
	watchers, err := c.askWatchers(ctx, denied)
	if err != nil {
		return err
	}
	now := make(map[claim]resolution, len(c.wanted))
	for w := range c.wanted {
		r, known := devices[w.device]
		if was := c.resolved[w]; !known && was.known { // withdrawn by the driver, as for an unhealthy device: its holder keeps it
			r, known = was.reference, true
		}
		now[w] = resolution{reference: r, known: known, watches: watchers[w.whole()][w.device]}
	}
	c.resolved, c.watchers = now, watchers
	return nil
}

// nodes returns the names of nodes whose slices are requested. Drivers of node-local devices name
// the pool after the node.
func (c *claims) nodes() []string {
	if c.node != "" {
		return []string{c.node}
	}
	var names []string
	for w := range c.wanted {
		names = append(names, w.device.pool)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxPools)]
}

// slices returns the ResourceSlices of a node, by the newest version of the API that the
// server has: all are read alike.
func (c *claims) slices(ctx context.Context, node string) ([]resourceSlice, error) {
	var err error
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		var list struct{ Items []resourceSlice }
		err = c.api.get(ctx, resourceAPI+version+"/resourceslices", url.Values{"fieldSelector": {"spec.nodeName=" + node}}, asJSON, &list)
		if !apierrors.IsNotFound(err) {
			c.version = version
			return list.Items, err
		}
	}
	return nil, err
}

// askWatchers returns the devices to which the wanted claims give access only for watching them.
// Each claim is read once: its devices do not change while the kubelet names it. If claims may not
// be read, all of their devices count as held.
func (c *claims) askWatchers(ctx context.Context, denied *bool) (map[claim]map[poolDevice]bool, error) {
	all := make(map[claim]map[poolDevice]bool, len(c.wanted))
	for w := range c.wanted {
		whole := w.whole()
		if _, done := all[whole]; done || *denied {
			continue
		}
		if devices, before := c.watchers[whole]; before {
			all[whole] = devices
			continue
		}
		devices, err := c.watchersOf(ctx, whole)
		switch {
		case apierrors.IsForbidden(err):
			*denied = true
		case apierrors.IsNotFound(err): // it has just gone
		case err != nil:
			return nil, fmt.Errorf("claim %s/%s: %w", w.namespace, w.name, err)
		default:
			all[whole] = devices
		}
	}
	return all, nil
}

func (c *claims) watchersOf(ctx context.Context, of claim) (map[poolDevice]bool, error) {
	if !isPlain(of.namespace) || !isPlain(of.name) {
		return nil, nil //nolint:nilnil // no such claim has any
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
	if err := c.api.get(ctx, resourceAPI+c.version+"/namespaces/"+of.namespace+"/resourceclaims/"+of.name, nil, asJSON, &object); err != nil {
		return nil, err
	}
	devices := map[poolDevice]bool{}
	for _, r := range object.Status.Allocation.Devices.Results {
		if r.AdminAccess {
			devices[poolDevice{r.Driver, r.Pool, r.Device}] = true
		}
	}
	return devices, nil
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

// devicesOf returns the devices of slices. Of each pool, the newest generation counts: a
// driver that changes its devices replaces all of its slices, one by one.
func devicesOf(all []resourceSlice) map[poolDevice]reference {
	newest := map[string]int64{}
	for i := range all {
		if s := &all[i].Spec; s.Driver == draDriver {
			newest[s.Pool.Name] = max(newest[s.Pool.Name], s.Pool.Generation)
		}
	}
	devices := map[poolDevice]reference{}
	for i := range all {
		s := &all[i].Spec
		if s.Driver != draDriver || s.Pool.Generation != newest[s.Pool.Name] {
			continue
		}
		for j := range s.Devices {
			at := poolDevice{s.Driver, s.Pool.Name, s.Devices[j].Name}
			if r, ok := s.Devices[j].reference(at); ok {
				devices[at] = r
			}
		}
	}
	return devices
}

package holders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	// slicesPath and claimPath are those of the API of dynamic resource allocation.
	slicesPath = "/apis/resource.k8s.io/%s/resourceslices"
	claimPath  = "/apis/resource.k8s.io/%s/namespaces/%s/resourceclaims/%s"
	// slicesPage is how many ResourceSlices, of at most 128 devices, are requested at once,
	// and maxSlicesPages bounds the pages of one node.
	slicesPage, maxSlicesPages = "100", 20
	// maxResourceAnswer bounds one answer of the API server, in bytes.
	maxResourceAnswer = 32 << 20
)

// resourceVersions are the versions of the API, the newest first: all of them are read alike.
var resourceVersions = [...]string{"v1", "v1beta2", "v1beta1"}

// resourceSlice is the part of a ResourceSlice that is read.
type resourceSlice struct {
	Spec struct {
		Driver string `json:"driver"`
		Pool   struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
		} `json:"pool"`
		Devices []sliceDevice `json:"devices"`
	} `json:"spec"`
}

type sliceDevice struct {
	Name       string     `json:"name"`
	Attributes attributes `json:"attributes"`
	Basic      struct {   // in v1beta1
		Attributes attributes `json:"attributes"`
	} `json:"basic"`
}

// attributes are keyed by name, with or without the domain of the driver.
type attributes map[string]struct {
	String string `json:"string"`
}

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
func devicesOf(slices []resourceSlice) map[poolDevice]reference {
	newest := map[string]int64{}
	for i := range slices {
		if s := &slices[i].Spec; s.Driver == draDriver {
			newest[s.Pool.Name] = max(newest[s.Pool.Name], s.Pool.Generation)
		}
	}
	devices := map[poolDevice]reference{}
	for i := range slices {
		s := &slices[i].Spec
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

// resourceAPI reads the API of dynamic resource allocation.
type resourceAPI struct {
	client  *Client
	base    *url.URL
	version string // the server's
}

func newResourceAPI(client *Client) (*resourceAPI, error) {
	base, _, err := rest.DefaultServerUrlFor(client.Config)
	if err != nil {
		return nil, fmt.Errorf("%w; correct the server of the kubeconfig", err)
	}
	return &resourceAPI{client: client, base: base, version: resourceVersions[0]}, nil
}

// slices returns the ResourceSlices of a node, by the newest version of the API that the
// server has.
func (a *resourceAPI) slices(ctx context.Context, node string) (all []resourceSlice, err error) {
	for _, version := range resourceVersions {
		all, err = a.slicesOf(ctx, version, node)
		if !errors.Is(err, errAbsent) {
			a.version = version
			return all, err
		}
	}
	return nil, errors.New("the Kubernetes API server has no ResourceSlices; dynamic resource allocation needs Kubernetes 1.32 or later")
}

func (a *resourceAPI) slicesOf(ctx context.Context, version, node string) (all []resourceSlice, err error) {
	query := url.Values{"fieldSelector": {"spec.nodeName=" + node}, "limit": {slicesPage}}
	for range maxSlicesPages {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []resourceSlice `json:"items"`
		}
		if err := a.get(ctx, fmt.Sprintf(slicesPath, version), query, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Metadata.Continue == "" {
			break
		}
		query.Set("continue", page.Metadata.Continue)
	}
	return all, nil
}

// claimResult is one device of a claim.
type claimResult struct {
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Device      string `json:"device"`
	AdminAccess bool   `json:"adminAccess"`
}

// watchers returns the devices to which a claim gives access only for watching them, without
// holding them.
func (a *resourceAPI) watchers(ctx context.Context, namespace, name string) (map[poolDevice]bool, error) {
	var claim struct {
		Status struct {
			Allocation struct {
				Devices struct {
					Results []claimResult `json:"results"`
				} `json:"devices"`
			} `json:"allocation"`
		} `json:"status"`
	}
	path := fmt.Sprintf(claimPath, a.version, url.PathEscape(namespace), url.PathEscape(name))
	if err := a.get(ctx, path, nil, &claim); err != nil {
		return nil, err
	}
	devices := map[poolDevice]bool{}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess {
			devices[poolDevice{r.Driver, r.Pool, r.Device}] = true
		}
	}
	return devices, nil
}

// get reads JSON from a path of the API server.
func (a *resourceAPI) get(ctx context.Context, path string, query url.Values, into any) error {
	if err := a.client.Config.RateLimiter.Wait(ctx); err != nil {
		return err
	}
	at := *a.base
	at.Path = strings.TrimSuffix(at.Path, "/") + path
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := a.client.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("the Kubernetes API server does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	body := io.LimitReader(answer.Body, maxResourceAnswer)
	switch answer.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(body).Decode(into); err != nil {
			return fmt.Errorf("the answer of the Kubernetes API server cannot be read: %w", err)
		}
		return nil
	case http.StatusNotFound:
		return errAbsent
	case http.StatusForbidden, http.StatusUnauthorized:
		return errDenied
	}
	return fmt.Errorf("the Kubernetes API server answers %s", answer.Status)
}

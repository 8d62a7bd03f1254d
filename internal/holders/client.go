// Package holders says who holds a GPU: the pods that the kubelet and the API server of a
// Kubernetes cluster name, the workloads that own them, and the jobs that a prolog describes.
package holders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// requestsPerSecond and requestBurst bound the requests of one proxy to the API
	// server: there may be one on each node.
	requestsPerSecond = 20
	requestBurst      = 40
	// RequestTimeout bounds one request other than a watch.
	RequestTimeout = 10 * time.Second
)

// ErrNoCluster is the error of a program that does not run in a pod and has no kubeconfig.
var ErrNoCluster error = &canonical.Failure{
	Cause: "no Kubernetes cluster is known: the program does not run in a pod with a service account (automountServiceAccountToken), " +
		"and no kubeconfig is given",
	Remedy: "name one with --kube.config=FILE",
}

// failed returns an error with a remedy.
func failed(what string, err error, remedy string) error {
	return &canonical.Failure{Cause: what + ": " + err.Error(), Remedy: remedy}
}

// Client is the access to one cluster. All its users share its connections and its limit of
// requests.
type Client struct{ web rest.Interface }

// quiet discards the log of Kubernetes' own packages, which is global: what matters is returned as
// an error.
var quiet = sync.OnceFunc(func() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) })

// NewClient returns the access by the current context of the kubeconfig file or,
// with "", by the service account of the pod that the program runs in. It sends
// nothing. userAgent is the name in the API server's audit log.
func NewClient(kubeconfig, userAgent string) (*Client, error) {
	quiet()
	config, err := access(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestBurst)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = codecs()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, failed("the credentials for the Kubernetes API server cannot be used", err, "correct the kubeconfig, or the service account's files")
	}
	// The credentials are for the API server alone. transport may be http.DefaultClient.
	own := *transport
	own.Transport = bounded{cmp.Or(own.Transport, http.DefaultTransport)}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	web, err := rest.RESTClientForConfigAndClient(config, &own)
	if err != nil {
		return nil, failed("the address of the Kubernetes API server cannot be used", err, "correct the kubeconfig")
	}
	return &Client{web}, nil
}

// maxList is the longest answer of the API server that is read, in bytes, and maxWatch that of a watch, which then begins
// anew where it was: client-go takes an event of any length.
const (
	maxList  = 64 << 20
	maxWatch = 16 << 20
)

// bounded cuts answers that do not end.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	switch {
	case err != nil:
	case r.URL.Query().Has("watch"):
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxWatch), response.Body}
	default:
		response.Body = http.MaxBytesReader(nil, response.Body, maxList)
	}
	return response, err
}

// codecs reads what is watched, and the errors of the API server.
func codecs() runtime.NegotiatedSerializer {
	scheme, v1 := runtime.NewScheme(), schema.GroupVersion{Version: "v1"}
	scheme.AddKnownTypeWithName(v1.WithKind("Pod"), &podObject{})
	scheme.AddKnownTypeWithName(v1.WithKind("PodList"), &podList{})
	metav1.AddToGroupVersion(scheme, v1)
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// access reads the address of the API server and our credentials.
func access(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, failed("the kubeconfig "+kubeconfig, err, "give a file whose current-context names a cluster and a user")
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, failed("the pod's service account cannot be used", err, "set automountServiceAccountToken: true, or name a kubeconfig with --kube.config=FILE")
	}
	return config, nil
}

// get reads JSON from a path of the API server. Errors of the server are those of
// k8s.io/apimachinery/pkg/api/errors.
func (c *Client) get(ctx context.Context, path string, query url.Values, accept string, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RequestTimeout, canonical.TimedOut(RequestTimeout))
	defer cancel()
	request := c.web.Get().AbsPath(path).SetHeader("Accept", accept)
	for name := range query {
		request.Param(name, query.Get(name))
	}
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil {
		return cause(ctx, err)
	}
	body, _ := answer.Raw() // err is nil
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of the Kubernetes API server cannot be read: %w", err)
	}
	return nil
}

// Get begins a request. It implements cache.Getter.
func (c *Client) Get() *rest.Request { return c.web.Get() }

// cause returns why ctx ended, if that is why a request failed.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

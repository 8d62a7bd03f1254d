// Package holders says who holds a GPU: the pods that the kubelet and the API server of a
// Kubernetes cluster name, the workloads that own them, and the jobs that a prolog describes.
package holders

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
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
var ErrNoCluster = errors.New("no Kubernetes cluster is known: the program does not run in a pod with a service account (automountServiceAccountToken), and no kubeconfig is given; " +
	"name one with --kube.config=FILE")

// Client is the access to one cluster. All its users share its connections
// and its limit of requests. Its fields are the arguments of client-go's
// ForConfigAndClient functions.
type Client struct {
	Config *rest.Config
	// HTTP follows no redirect: the credentials are for the API server alone. It has no
	// timeout and no limit of its own, because watches last; give each request
	// RequestTimeout, and bound what you read of an answer.
	HTTP *http.Client
}

// maxObject bounds one answer to client-go, in bytes, since client-go reads all of it. An
// object has at most about 2 MB, since etcd takes no more, and so do lists of resources.
const maxObject = 4 << 20

// errTooLong is the error for an answer longer than maxObject.
var errTooLong = fmt.Errorf("the answer has more than %d bytes", maxObject)

// bounded returns HTTP for client-go, which bounds no answer itself.
func (c *Client) bounded() *http.Client {
	own := *c.HTTP
	own.Transport = boundedTransport{cmp.Or(own.Transport, http.DefaultTransport)}
	return &own
}

// boundedTransport ends answers after maxObject.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{answer.Body, maxObject}
	}
	return answer, err
}

// boundedBody is a body of which at most left bytes may still be read.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (n int, err error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err = b.ReadCloser.Read(into[:min(len(into), b.left+1)])
	if b.left -= n; b.left < 0 {
		return n, errTooLong
	}
	return n, err
}

// NewClient returns the access by the current context of the kubeconfig file or,
// with "", by the service account of the pod that the program runs in. It sends
// nothing. userAgent is the name in the API server's audit log.
func NewClient(kubeconfig, userAgent string) (*Client, error) {
	config, err := access(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestBurst)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the credentials for the Kubernetes API server cannot be used: %w; correct the kubeconfig, or the service account's files", err)
	}
	return &Client{Config: config, HTTP: noRedirects(transport)}, nil
}

// noRedirects returns client, which may be http.DefaultClient, except for redirects.
func noRedirects(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// access reads the address of the API server and our credentials.
func access(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		switch {
		case errors.Is(err, rest.ErrNotInCluster):
			return nil, ErrNoCluster
		case err != nil:
			return nil, fmt.Errorf("the pod's service account cannot be used: %w; set automountServiceAccountToken: true, or name a kubeconfig with --kube.config=FILE", err)
		}
		return config, nil
	}
	config, err := fromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig %s: %w; give a file whose current-context names a cluster and a user", kubeconfig, err)
	}
	return config, nil
}

// fromFile returns the configuration of a kubeconfig's current context, never the pod's service account,
// which client-go uses instead of an empty file.
func fromFile(kubeconfig string) (*rest.Config, error) {
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveClientConfig(*file, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}

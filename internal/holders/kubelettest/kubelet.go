// Package kubelettest is a kubelet for tests, limited to its list of devices: a real
// gRPC server of the pod-resources API on a unix socket.
package kubelettest

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Kubelet answers with the pods of the last Set. Any goroutine may use it.
type Kubelet struct {
	podresources.UnimplementedPodResourcesListerServer

	// Socket is its path.
	Socket string
	// Asked counts the requests for pods.
	Asked atomic.Int64

	tb       testing.TB
	mu       sync.Mutex
	server   *grpc.Server // nil while it is stopped
	listener net.Listener
	pods     []*podresources.PodResources
	all      []*podresources.ContainerDevices
	hangs    bool
	refuse   string // why it does not answer, "" while it does
}

// New returns a kubelet that serves until the test ends.
func New(tb testing.TB) *Kubelet {
	tb.Helper()
	k := &Kubelet{tb: tb, Socket: filepath.Join(tb.TempDir(), "kubelet.sock")}
	k.Start()
	tb.Cleanup(k.Stop)
	return k
}

// Start serves. It may be called again after Stop.
func (k *Kubelet) Start() {
	k.tb.Helper()
	var network net.ListenConfig
	listener, err := network.Listen(context.Background(), "unix", k.Socket)
	if err != nil {
		k.tb.Fatal(err)
	}
	k.server, k.listener = grpc.NewServer(), listener
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(k.server) // ends with Stop
}

// Stop ends serving and removes the socket, as a kubelet that stops does.
func (k *Kubelet) Stop() {
	if k.server != nil {
		k.server.Stop()
		_ = k.listener.Close() // Serve may not have begun
		k.server = nil
	}
}

// Set makes pods the answer.
func (k *Kubelet) Set(pods ...*podresources.PodResources) { k.set(func() { k.pods = pods }) }

// SetAllocatable sets the devices that the node has.
func (k *Kubelet) SetAllocatable(all ...*podresources.ContainerDevices) {
	k.set(func() { k.all = all })
}

// Hang leaves requests without an answer.
func (k *Kubelet) Hang() { k.set(func() { k.hangs = true }) }

// Refuse makes an error with this text the answer.
func (k *Kubelet) Refuse(text string) { k.set(func() { k.refuse = text }) }

func (k *Kubelet) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// List implements the API.
func (k *Kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.Asked.Add(1)
	k.mu.Lock()
	hangs, pods, refuse := k.hangs, k.pods, k.refuse
	k.mu.Unlock()
	if refuse != "" {
		return nil, status.Error(codes.Internal, refuse)
	}
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
}

// GetAllocatableResources implements the API.
func (k *Kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &podresources.AllocatableResourcesResponse{Devices: k.all}, nil
}

// Pod returns a pod of one container, main, with devices of one resource.
func Pod(namespace, name, resource string, ids ...string) *podresources.PodResources {
	return pod(namespace, name, &podresources.ContainerResources{Devices: []*podresources.ContainerDevices{Devices(resource, ids...)}})
}

// Devices returns devices of one resource.
func Devices(resource string, ids ...string) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

// Claimed returns a pod of one container, main, with devices of NVIDIA's GPU driver through a
// claim in the pod's namespace.
func Claimed(namespace, name, claim, pool string, devices ...string) *podresources.PodResources {
	resource := &podresources.DynamicResource{ClaimName: claim, ClaimNamespace: namespace}
	for _, device := range devices {
		resource.ClaimResources = append(resource.ClaimResources, &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: pool, DeviceName: device})
	}
	return pod(namespace, name, &podresources.ContainerResources{DynamicResources: []*podresources.DynamicResource{resource}})
}

func pod(namespace, name string, main *podresources.ContainerResources) *podresources.PodResources {
	main.Name = "main"
	return &podresources.PodResources{Namespace: namespace, Name: name, Containers: []*podresources.ContainerResources{main}}
}

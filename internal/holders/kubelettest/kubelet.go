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

	tb     testing.TB
	mu     sync.Mutex
	server *grpc.Server  // nil while it is stopped
	served chan struct{} // closed once server has closed its socket
	pods   []*podresources.PodResources
	all    []*podresources.ContainerDevices
	hang   chan struct{} // closed to end it; nil while it answers
	refuse string        // why it does not answer, "" while it does
}

// New returns a kubelet that serves until the test ends.
func New(tb testing.TB) *Kubelet {
	tb.Helper()
	k := &Kubelet{tb: tb, Socket: filepath.Join(tb.TempDir(), "kubelet.sock")}
	k.Start()
	tb.Cleanup(func() { k.Resume(); k.Stop() })
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
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	k.mu.Lock()
	served := make(chan struct{})
	k.server, k.served = server, served
	k.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Stop
	}()
}

// Stop ends serving and removes the socket, as a kubelet that stops does.
func (k *Kubelet) Stop() {
	k.mu.Lock()
	server, served := k.server, k.served
	k.server = nil
	k.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served // Stop returns before that if Serve has not begun
	}
}

// Set makes pods the answer.
func (k *Kubelet) Set(pods ...*podresources.PodResources) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = pods
}

// SetAllocatable sets the devices that the node has.
func (k *Kubelet) SetAllocatable(devices ...*podresources.ContainerDevices) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = devices
}

// Hang leaves requests without an answer until Resume.
func (k *Kubelet) Hang() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hang == nil {
		k.hang = make(chan struct{})
	}
}

// Resume ends Hang.
func (k *Kubelet) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hang != nil {
		close(k.hang)
		k.hang = nil
	}
}

// Refuse makes an error with this text the answer.
func (k *Kubelet) Refuse(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse = text
}

// List implements the API.
func (k *Kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.Asked.Add(1)
	k.mu.Lock()
	hang, pods, refuse := k.hang, k.pods, k.refuse
	k.mu.Unlock()
	if refuse != "" {
		return nil, status.Error(codes.Internal, refuse)
	}
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
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
	return &podresources.PodResources{Namespace: namespace, Name: name, Containers: []*podresources.ContainerResources{
		{Name: "main", Devices: []*podresources.ContainerDevices{Devices(resource, ids...)}},
	}}
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
	return &podresources.PodResources{Namespace: namespace, Name: name, Containers: []*podresources.ContainerResources{
		{Name: "main", DynamicResources: []*podresources.DynamicResource{resource}},
	}}
}

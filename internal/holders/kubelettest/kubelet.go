// Package kubelettest is a kubelet for tests, limited to its list of devices: a real
// gRPC server of the pod-resources API on a unix socket.
package kubelettest

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Kubelet answers with the pods of the last Set. Any goroutine may use it.
type Kubelet struct {
	podresources.UnimplementedPodResourcesListerServer

	// Socket is its path.
	Socket string
	// Asked counts the requests for pods.
	Asked atomic.Int64

	server   *grpc.Server
	listener net.Listener
	pods     atomic.Pointer[[]*podresources.PodResources]
	hangs    atomic.Bool
}

// New returns a kubelet that serves until the test ends.
func New(tb testing.TB) *Kubelet {
	tb.Helper()
	k := &Kubelet{Socket: filepath.Join(tb.TempDir(), "kubelet.sock"), server: grpc.NewServer()}
	k.Set()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", k.Socket)
	if err != nil {
		tb.Fatal(err)
	}
	k.listener = listener
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go func() { _ = k.server.Serve(listener) }() // ends with Stop
	tb.Cleanup(k.Stop)
	return k
}

// Stop ends serving and removes the socket, as a kubelet that stops does.
func (k *Kubelet) Stop() {
	k.server.Stop()
	_ = k.listener.Close() // Serve may not have begun
}

// Set makes pods the answer.
func (k *Kubelet) Set(pods ...*podresources.PodResources) { k.pods.Store(&pods) }

// Hang leaves requests without an answer.
func (k *Kubelet) Hang() { k.hangs.Store(true) }

// List implements the API.
func (k *Kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.Asked.Add(1)
	if k.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &podresources.ListPodResourcesResponse{PodResources: *k.pods.Load()}, nil
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

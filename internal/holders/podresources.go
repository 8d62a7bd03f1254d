package holders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// PodResourcesSocket is where the kubelet serves its pod-resources API, unless it has
// another --root-dir.
const PodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// maxAnswer is the longest answer of the kubelet that is read, in bytes: the limit of the
// kubelet's own clients. A node of 500 pods with a device each answers with about 100 KiB.
const maxAnswer = 16 << 20

// hold is one device that one container has.
type hold struct {
	canonical.Workload
	reference
}

// claimed is a device that a container has through a claim, as the kubelet names it.
type claimed struct {
	canonical.Workload
	claim
}

// listed is the kubelet's list of the node's containers.
type listed struct {
	holds  []hold
	claims []claimed
	// unknown is how many device ids of NVIDIA's resources could not be read.
	unknown int
	// existing is how many MIG devices of each profile the node has, allocated or not; nil
	// if unknown.
	existing map[string]int
}

// list asks the kubelet that serves at socket.
func list(ctx context.Context, socket string) (listed, *canonical.Failure) {
	var network net.Dialer
	dialed, err := network.DialContext(ctx, "unix", socket)
	if err != nil {
		return listed{}, explain(socket, err)
	}
	defer func() { _ = dialed.Close() }() // gRPC may have
	conn, err := grpc.NewClient("passthrough:///kubelet", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dialed, nil }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return listed{}, explain(socket, err)
	}
	defer func() { _ = conn.Close() }() // fails only if it is closed
	client := podresources.NewPodResourcesListerClient(conn)
	answer, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return listed{}, explain(socket, err)
	}
	l := read(answer)
	// Without an answer, fewer MIG devices can be assigned.
	if all, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}); err == nil {
		l.existing = countProfiles(all)
	}
	return l, nil
}

// explain returns why the kubelet, or the connection to it, failed.
func explain(socket string, err error) *canonical.Failure {
	f := &canonical.Failure{Cause: status.Convert(err).Message(), Remedy: "see the kubelet's log"}
	switch code := status.Code(err); {
	case errors.Is(err, fs.ErrNotExist):
		f.Cause = "there is no " + socket
		f.Remedy = "mount the node's /var/lib/kubelet/pod-resources into the pod (hostPath), or name the socket with --kube.pod-resources=PATH"
	case errors.Is(err, fs.ErrPermission):
		f.Cause, f.Remedy = "permission for "+socket+" is denied", "run as root (runAsUser: 0), which owns the kubelet's socket"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Cause, f.Remedy = "nothing listens at "+socket, "check whether the kubelet runs: systemctl status kubelet"
	case code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
		f.Cause, f.Remedy = "the kubelet did not answer in time", "check whether it hangs: journalctl -u kubelet"
	case code == codes.Unimplemented:
		f.Cause, f.Remedy = "the kubelet does not serve the v1 API of pod resources", "Kubernetes 1.20 or later is needed; check that the socket is the kubelet's"
	case code == codes.ResourceExhausted:
		f.Cause = fmt.Sprintf("the kubelet refuses, or answers with more than %d MiB: %s", maxAnswer>>20, f.Cause)
	}
	return f
}

// read returns the containers of an answer that have devices of NVIDIA's.
func read(answer *podresources.ListPodResourcesResponse) (l listed) {
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			w := canonical.Workload{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: container.GetName()}
			if w.Pod == "" {
				continue
			}
			for _, devices := range container.GetDevices() {
				l.addDevices(w, devices)
			}
			for _, resource := range container.GetDynamicResources() {
				l.addClaim(w, resource)
			}
		}
	}
	return l
}

func (l *listed) addDevices(w canonical.Workload, devices *podresources.ContainerDevices) {
	resource := devices.GetResourceName()
	if !isOurs(resource) {
		return
	}
	for _, id := range devices.GetDeviceIds() {
		if r, ok := parseDeviceID(resource, id); ok {
			l.holds = append(l.holds, hold{w, r})
		} else {
			l.unknown++
		}
	}
}

func (l *listed) addClaim(w canonical.Workload, resource *podresources.DynamicResource) {
	for _, c := range resource.GetClaimResources() {
		if c.GetDriverName() != draDriver || c.GetDeviceName() == "" {
			continue
		}
		device := poolDevice{c.GetDriverName(), c.GetPoolName(), c.GetDeviceName()}
		l.claims = append(l.claims, claimed{w, claim{resource.GetClaimNamespace(), resource.GetClaimName(), device}})
	}
}

// countProfiles counts the MIG devices of each profile that the kubelet can allocate.
func countProfiles(all *podresources.AllocatableResourcesResponse) map[string]int {
	seen := map[reference]bool{}
	count := map[string]int{}
	for _, devices := range all.GetDevices() {
		for _, id := range devices.GetDeviceIds() {
			if r, ok := parseDeviceID(devices.GetResourceName(), id); ok && r.profile != "" && !seen[r] {
				seen[r] = true
				count[r.profile]++
			}
		}
	}
	return count
}

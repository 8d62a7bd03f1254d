package holders

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
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
}

// maxName is the longest name in Kubernetes, in bytes.
const maxName = 253

// name cuts a name that the kubelet or the API server should not have given: it becomes a label of many series.
func name(text string) string { return diag.Short(strings.ToValidUTF8(text, "\uFFFD"), maxName) }

// list asks the kubelet that serves at socket. gRPC's own library would be a twentieth of the
// program, for this one call: a request without fields, over HTTP/2.
func list(ctx context.Context, socket string) (listed, *canonical.Failure) {
	transport := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	body, err := call(ctx, transport, "http://kubelet/v1.PodResourcesLister/List")
	if err != nil {
		return listed{}, explain(socket, err)
	}
	var l listed
	for _, pod := range parse(body)[1] {
		l.addPod(parse(pod))
	}
	return l, nil
}

// call makes a gRPC call without arguments. Messages begin with a flag for compression, which
// was not offered, and their length.
func call(ctx context.Context, transport http.RoundTripper, url string) ([]byte, error) {
	const head = 5
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(make([]byte, head)))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, head+maxAnswer+1))
	if err != nil {
		return nil, err
	}
	status := response.Trailer
	if status.Get("Grpc-Status") == "" { // without a message, it is in the header
		status = response.Header
	}
	switch code := status.Get("Grpc-Status"); {
	case len(body) > head+maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	case code != "" && code != "0":
		return nil, fmt.Errorf("%s (gRPC status %s)", status.Get("Grpc-Message"), code)
	case code == "" || len(body) < head || int(binary.BigEndian.Uint32(body[1:])) != len(body)-head:
		return nil, errors.New("the answer is not that of a kubelet: " + response.Status)
	}
	return body[head:], nil
}

// explain returns why the kubelet, or the connection to it, failed.
func explain(socket string, err error) *canonical.Failure {
	f := &canonical.Failure{Cause: err.Error(), Remedy: "see the kubelet's log"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Cause = "there is no " + socket
		f.Remedy = "mount the node's /var/lib/kubelet/pod-resources into the pod (hostPath), or name the socket with --kube.pod-resources=PATH"
	case errors.Is(err, fs.ErrPermission):
		f.Cause, f.Remedy = "permission for "+socket+" is denied", "run as root (runAsUser: 0), which owns the kubelet's socket"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Cause, f.Remedy = "nothing listens at "+socket, "check whether the kubelet runs: systemctl status kubelet"
	case errors.Is(err, context.DeadlineExceeded):
		f.Cause, f.Remedy = "the kubelet did not answer in time", "check whether it hangs: journalctl -u kubelet"
	}
	return f
}

// message is a protobuf message: the fields that are texts or messages, by number. The
// numbers are those of k8s.io/kubelet/pkg/apis/podresources/v1.
type message map[protowire.Number][][]byte

// parse reads a message up to a mistake.
func parse(b []byte) message {
	m := message{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(number, kind, b[n:])
		}
		if n < 0 || size < 0 {
			break
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b[n:])
			m[number] = append(m[number], value)
		}
		b = b[n+size:]
	}
	return m
}

// text returns a field that is a text.
func (m message) text(number protowire.Number) string {
	if len(m[number]) == 0 {
		return ""
	}
	return string(m[number][0])
}

// addPod adds the containers of a PodResources that have devices of NVIDIA's.
func (l *listed) addPod(pod message) {
	for _, one := range pod[3] {
		container := parse(one)
		w := canonical.Workload{Pod: name(pod.text(1)), Namespace: name(pod.text(2)), Container: name(container.text(1))}
		for _, devices := range container[2] {
			l.addDevices(w, parse(devices))
		}
		for _, resource := range container[5] {
			l.addClaim(w, parse(resource))
		}
	}
}

// addDevices adds ContainerDevices.
func (l *listed) addDevices(w canonical.Workload, devices message) {
	if !isOurs(devices.text(1)) {
		return
	}
	for _, id := range devices[2] {
		if r, ok := parseDeviceID(string(id)); ok {
			l.holds = append(l.holds, hold{w, r})
		} else {
			l.unknown++
		}
	}
}

// addClaim adds a DynamicResource.
func (l *listed) addClaim(w canonical.Workload, resource message) {
	for _, one := range resource[4] {
		if c := parse(one); c.text(2) == draDriver {
			l.claims = append(l.claims, claimed{w, claim{namespace: resource.text(3), name: resource.text(2), device: poolDevice{c.text(3), c.text(4)}}})
		}
	}
}

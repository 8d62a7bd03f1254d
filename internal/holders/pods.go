package holders

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultSelector selects the pods of dcgm-exporter's own chart and those of the
// gpu-operator.
const DefaultSelector = "app.kubernetes.io/name=dcgm-exporter or app=nvidia-dcgm-exporter"

// ParseSelector returns the label selectors of Kubernetes in text, which are separated by
// " or ": text selects what any of them selects.
func ParseSelector(text string) (selectors []string, err error) {
	for one := range strings.SplitSeq(text, " or ") {
		one = strings.TrimSpace(one)
		parsed, err := labels.Parse(one)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is not a label selector: %w; write one such as app=nvidia-dcgm-exporter, or several with or between them", one, err)
		case parsed.Empty():
			return nil, fmt.Errorf("%q selects every pod; write a label of the exporter's pods, such as app=nvidia-dcgm-exporter", one)
		}
		selectors = append(selectors, parsed.String())
	}
	return selectors, nil
}

// ParsePort fails if text is neither the name nor the number of a container's port; ""
// is valid.
func ParsePort(text string) error {
	if n, err := strconv.ParseUint(text, 10, 16); text == "" || err == nil && n > 0 || len(validation.IsValidPortName(text)) == 0 {
		return nil
	}
	return fmt.Errorf("%q is neither the name nor the number of a port; write one such as metrics or 9400", text)
}

// CheckNamespace fails if text cannot be the name of a namespace; "" is valid.
func CheckNamespace(text string) error {
	if text == "" || len(validation.IsDNS1123Label(text)) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not a name of a namespace; write one such as gpu-operator", text)
}

// defaultPort is dcgm-exporter's port, and defaultPortNames are its names in its chart and in
// the gpu-operator.
const defaultPort = 9400

var defaultPortNames = []string{"metrics", "gpu-metrics"}

// Exporter is a pod that runs an exporter.
type Exporter struct {
	UID, Namespace, Pod, Node string
	Address                   netip.AddrPort
}

func compareExporters(a, b Exporter) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.UID, b.UID))
}

// podObject is the part of a Pod that is read.
type podObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeName   string `json:"nodeName"`
		Containers []struct {
			Ports []struct {
				Name          string `json:"name"`
				ContainerPort uint16 `json:"containerPort"`
			} `json:"ports"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

// podList is a list of pods.
type podList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []podObject `json:"items"`
}

// UnmarshalJSON leaves out the metadata that is not needed, most of a pod's memory.
func (p *podObject) UnmarshalJSON(text []byte) error {
	type whole podObject
	err := json.Unmarshal(text, (*whole)(p))
	p.Annotations, p.ManagedFields, p.OwnerReferences = nil, nil, nil
	return err
}

// DeepCopyObject implements runtime.Object. Pods are not changed.
func (p *podObject) DeepCopyObject() runtime.Object { own := *p; return &own }

// DeepCopyObject implements runtime.Object.
func (l *podList) DeepCopyObject() runtime.Object { own := *l; return &own }

// exporter returns how a pod is read. ok is false if it cannot be: it has not started, has
// ended, or is about to end. A pod that is not ready is read, so that its users learn that it
// does not answer.
func (p *podObject) exporter(port string) (e Exporter, ok bool) {
	ip, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil || p.Status.Phase != "Running" || p.DeletionTimestamp != nil {
		return e, false
	}
	return Exporter{
		UID: string(p.UID), Namespace: name(p.Namespace), Pod: name(p.Name), Node: name(p.Spec.NodeName),
		Address: netip.AddrPortFrom(ip, p.port(port)),
	}, true
}

// port returns the port of a pod with that name or number; "" is dcgm-exporter's.
func (p *podObject) port(wanted string) uint16 {
	if n, err := strconv.ParseUint(wanted, 10, 16); err == nil {
		return uint16(n)
	}
	names := defaultPortNames
	if wanted != "" {
		names = []string{wanted}
	}
	for i := range p.Spec.Containers {
		for _, one := range p.Spec.Containers[i].Ports {
			if slices.Contains(names, one.Name) && one.ContainerPort > 0 {
				return one.ContainerPort
			}
		}
	}
	return defaultPort
}

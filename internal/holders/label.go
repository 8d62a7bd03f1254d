package holders

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// WorkloadLabel is a label of pods whose value names the workload that they belong to.
type WorkloadLabel struct {
	// Key is the key of the label.
	Key string
	// Kind is the kind of the workload. With "", all pods with one name are one workload,
	// whatever owns them.
	Kind string
}

// maxKind is the longest kind, which Kubernetes bounds as it does a DNS label.
const maxKind = validation.DNS1123LabelMaxLength

// ParseWorkloadLabel reads KEY or KEY=KIND.
func ParseWorkloadLabel(text string) (WorkloadLabel, error) {
	key, kind, given := strings.Cut(text, "=")
	if wrong := validation.IsQualifiedName(key); wrong != nil {
		return WorkloadLabel{}, fmt.Errorf("%q is not a key of a label; write one such as app.kubernetes.io/name", key)
	}
	if given && (len(kind) > maxKind || validation.IsDNS1035Label(strings.ToLower(kind)) != nil) {
		return WorkloadLabel{}, fmt.Errorf("%q is not a kind; write one such as Job, of letters and digits, or the key of the label alone", kind)
	}
	return WorkloadLabel{key, kind}, nil
}

// String returns what ParseWorkloadLabel reads.
func (l WorkloadLabel) String() string {
	if l.Kind == "" {
		return l.Key
	}
	return l.Key + "=" + l.Kind
}

// workloadOf returns the workload that the first key with a value names.
func workloadOf(keys []WorkloadLabel, labels map[string]string) (owner Owner, named bool) {
	for _, l := range keys {
		if name := labels[l.Key]; name != "" {
			return Owner{l.Kind, name}, true
		}
	}
	return Owner{}, false
}

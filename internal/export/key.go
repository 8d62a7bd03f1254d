package export

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Key is what a field is called in JSON and in our own columns of CSV: the name
// of its family without the prefix and, where several fields make up the family,
// the values of the labels that tell them apart, such as
// gpu_ecc_errors_total_uncorrectable_volatile.
func Key(f canonical.Field) string {
	info := &canonical.Fields[f]
	key := info.Name
	for i, part := range strings.Split(info.Labels, `"`) {
		if i%2 == 1 { // between quotes
			key += "_" + part
		}
	}
	return key
}

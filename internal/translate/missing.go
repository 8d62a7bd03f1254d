package translate

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Missing appends to dst those of inputs, in their order, that no device of f
// gave.
func Missing(f *canonical.Frame, inputs []canonical.Field, dst []canonical.Field) []canonical.Field {
	for _, field := range inputs {
		if !f.Gives(field) {
			dst = append(dst, field)
		}
	}
	return dst
}

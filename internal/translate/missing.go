package translate

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// Missing appends to dst those of inputs, in their order, that no device of f
// gave.
func Missing(f *canonical.Frame, inputs []canonical.Field, dst []canonical.Field) []canonical.Field {
	for _, field := range inputs {
		if !given(f, field) {
			dst = append(dst, field)
		}
	}
	return dst
}

// given tells whether any device of f gave a field.
func given(f *canonical.Frame, field canonical.Field) bool {
	for i := range f.Len() {
		if canonical.Given(f.Row(i)[field]) {
			return true
		}
	}
	return false
}

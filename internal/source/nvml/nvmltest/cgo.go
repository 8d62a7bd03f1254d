//go:build cgo

package nvmltest

// usesC is whether this test binary was built with cgo, and so with a C
// compiler.
const usesC = true

//go:build !cgo

package nvmltest

const usesC = false

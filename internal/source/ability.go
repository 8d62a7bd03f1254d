package source

import "context"

// As returns src, or the first of the sources that it wraps, which it returns from
// an Unwrap method, that can do what T says: a Checker, a Versioned, a
// ProcessLister, a Streams.
func As[T any](src Source) (able T, ok bool) {
	for src != nil {
		if able, ok = src.(T); ok {
			return able, true
		}
		wrapper, wraps := src.(interface{ Unwrap() Source })
		if !wraps {
			break
		}
		src = wrapper.Unwrap()
	}
	return able, false
}

// Checker is what a Source implements that can tell before its first Read what no
// waiting is likely to mend.
type Checker interface {
	// Check returns that as an *Error, so that a program may end with it, and nil
	// where there is nothing of the kind: also where what it asks is slow, or is
	// likely to come. It returns when ctx ends at the latest. Nobody reads while
	// it runs.
	Check(ctx context.Context) error
}

// Versioned is what a Source implements that knows what it reads with.
type Versioned interface {
	// Version names it and its version in a few words for people, such as
	// "dcgmi 4.4.1"; "" while that is not known. It may be called from any
	// goroutine, and does not wait.
	Version() string
}

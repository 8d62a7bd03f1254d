package source

import (
	"context"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// plain is a Source without optional methods.
type plain struct{}

func (plain) Name() string                           { return "plain" }
func (plain) Caps() Caps                             { return Caps{} }
func (plain) Read(context.Context, *raw.Batch) error { return nil }
func (plain) Close() error                           { return nil }

type versioned struct{ plain }

func (versioned) Version() string { return "1.2" }

// wrapper wraps another source.
type wrapper struct {
	plain
	src Source
}

func (w wrapper) Unwrap() Source { return w.src }

func TestAs(t *testing.T) {
	for _, tt := range []struct {
		name string
		src  Source
		want bool
	}{
		{"able itself", versioned{}, true},
		{"wrapped", wrapper{src: versioned{}}, true},
		{"wrapped twice", wrapper{src: wrapper{src: versioned{}}}, true},
		{"not able", plain{}, false},
		{"not able, wrapped", wrapper{src: plain{}}, false},
		{"around nothing", wrapper{}, false},
		{"nothing", nil, false},
	} {
		v, ok := As[Versioned](tt.src)
		if ok != tt.want || ok && v.Version() != "1.2" {
			t.Errorf("%s: %v, %t", tt.name, v, ok)
		}
	}
}

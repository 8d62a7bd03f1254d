package expose

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for _, row := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip, deflate, br"}, true},
		{[]string{"deflate,gzip"}, true},
		{[]string{"identity"}, false},
		{[]string{"br"}, false},
		{[]string{"gzipped"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.0"}, false},
		{[]string{"gzip; q=0.000"}, false},
		{[]string{"gzip ; Q = 0.5"}, true},
		{[]string{"gzip;q=0.001"}, true},
		{[]string{"gzip;q=1"}, true},
		{[]string{"gzip;q=2"}, false},
		{[]string{"gzip;q=-1"}, false},
		{[]string{"gzip;q=NaN"}, false},
		{[]string{"gzip;q="}, false},
		{[]string{"gzip;level=9"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"*;q=0.1, deflate"}, true},
		{[]string{"identity;q=0, *;q=0.5"}, true},
		{[]string{"deflate", "gzip"}, true},
		{[]string{"deflate", "gzip;q=0"}, false},
		{[]string{",,;;,gzip,"}, true},
	} {
		if got := acceptsGzip(row.headers); got != row.want {
			t.Errorf("%q: %v", row.headers, got)
		}
	}
}

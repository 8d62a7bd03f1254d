package canonical

import "testing"

func TestPCIAddress(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"0000:b5:00", "0000:b5:00"}, // the driver's lines
		{"0000:b5:00.0", "0000:b5:00"},
		{"00000000:B5:00.0", "0000:b5:00"}, // NVML, dcgm-exporter
		{"0018:01:00", "0018:01:00"},
		{"00010000:01:00.0", "10000:01:00"},
		{"0000:b5:00.4", "0000:b5:00.4"}, // a virtual function is another device
		{"0:5:0", "0000:05:00"},
		{"89ab:cd:ef", "89ab:cd:ef"}, {"1234:56:07", "1234:56:07"},
		{"", ""}, {"b5:00", ""}, {"0000:b5:00.", ""}, {"0000:b5:00.10", ""}, {"0000:g5:00", ""}, {"000000000:b5:00", ""}, {"0000:b5:", ""}, {"0000:1b5:00", ""}, {"0000:b5:100", ""}, {"~000:b5:00", ""}, {"0000:b5:00:1", ""},
	} {
		if got := PCIAddress(test.text); got != test.want {
			t.Errorf("%q is %q, want %q", test.text, got, test.want)
		}
	}
}

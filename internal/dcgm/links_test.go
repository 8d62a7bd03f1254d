package dcgm

import "testing"

// What drivers print: of boards that are linked, in part, and not at all.
func TestLinks(t *testing.T) {
	gpu := func(uuid string) string { return "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + uuid + ")\n" }
	tests := []struct {
		name, text string
		want       float64
	}{
		{"four links", gpu(uuid0) + "\t Link 0: 14.062 GB/s\n\t Link 1: 14.062 GB/s\n\t Link 2: 14.062 GB/s\n\t Link 3: 14.062 GB/s\n", 112.496e9},
		{"one that is slower", gpu(uuid0) + "         Link 0: 26.562 GB/s\n         Link 1: 1.562 GB/s\n", 56.248e9},
		{"a whole number, CRLF", gpu(uuid0) + "\t Link 0: 50 GB/s\r\n", 100e9},
		{"one that is not up", gpu(uuid0) + "\t Link 0: <inactive>\n\t Link 1: 25.781 GB/s\n\t Link 2: inactive\n", 51.562e9},
		{"none that is up", gpu(uuid0) + "NVML: Unable to retrieve NVLink information as all links are inActive\n", 0},
		{"the same, newer", gpu(uuid0) + "\t Unable to retrieve NVLink information as all links are inActive\n" + gpu(uuid1) + "\t Link 0: 25 GB/s\n", 0},
		{"no links", gpu(uuid0), 0},
		{"another board's", gpu(uuid1) + "\t Link 0: 25 GB/s\n", 0},
		{"a board that cannot be told", gpu(uuid0) + "\t Link 0: 25 GB/s\nGPU 1: (UUID: unknown)\n\t Link 0: 25 GB/s\n", 50e9},
		{"nobody's", "\t Link 0: 25 GB/s\n" + gpu(uuid0), 0},
		{"a speed that is none", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: NaN GB/s\n", 0},
		{"beyond reason", gpu(uuid0) + "\t Link 0: 1e300 GB/s\n", 0},
		{"below nothing", gpu(uuid0) + "\t Link 0: -25 GB/s\n", 0},
		{"another unit", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: 25000 MB/s\n", 0},
		{"cut", gpu(uuid0) + "\t Link 0: 25 GB/s\n\t Link 1: 26.5", 0},
		{"counters of the old form", gpu(uuid0) + "\t Link 0: Tx0: 2 KBytes, Rx0: 3 KBytes\n", 0},
		{"nothing", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := Parse(&Outputs{Discovery: []byte(heading + board0 + rule), Links: []byte(tt.text)})
			if len(n.Devices) != 1 || n.Devices[0].NVLinkLimit != tt.want {
				t.Errorf("%+v, want %v", n.Devices, tt.want)
			}
		})
	}
}

package canonical

import "testing"

// FuzzPCIAddress: an address has one canonical form, which is its own.
func FuzzPCIAddress(f *testing.F) {
	for _, text := range []string{"00000000:B5:00.0", "0000:b5:00.4", "0:5:0", "00010000:01:00.0", "::", "b5:00", "0000:b5:00.g", "İ:0:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address := PCIAddress(text)
		if address == "" {
			return
		}
		if again := PCIAddress(address); again != address || len(address) < len("0000:00:00") || len(address) > len("00000000:00:00.0") {
			t.Errorf("%q is %q, and that %q", text, address, again)
		}
	})
}

package canonical

import "strings"

// PCIAddress returns the canonical form of a device's PCI address, such as 0000:b5:00 for
// 00000000:B5:00.0: lower case, a domain of at least four digits, and a function only if it is
// not 0. It returns "" if text is not a PCI address.
func PCIAddress(text string) string {
	text, function, has := strings.Cut(strings.ToLower(text), ".")
	part := strings.Split(text, ":")
	switch {
	case has && !isHex(function, 1), len(part) != 3 || !isHex(part[0], 8) || !isHex(part[1], 2) || !isHex(part[2], 2):
		return ""
	case function == "0":
		function = ""
	}
	for i, width := range [...]int{4, 2, 2} {
		part[i] = strings.TrimLeft(part[i], "0")
		part[i] = strings.Repeat("0", max(0, width-len(part[i]))) + part[i]
	}
	text = strings.Join(part, ":")
	if function != "" {
		text += "." + function
	}
	return text
}

// isHex reports whether text is 1 to most hexadecimal digits, in lower case.
func isHex(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text, "0123456789abcdef") == ""
}

package expose

import (
	"strconv"
	"strings"
)

// acceptsGzip reports whether a client with these Accept-Encoding headers accepts
// gzip (RFC 9110, section 12.5.3). What cannot be parsed is a refusal: every client
// accepts an answer that is not encoded.
func acceptsGzip(headers []string) bool {
	named, others := -1.0, -1.0 // weight of gzip, and of what is not named
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			coding, parameters, _ := strings.Cut(part, ";")
			coding = strings.TrimSpace(coding)
			switch {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				named = max(named, quality(parameters))
			case coding == "*":
				others = max(others, quality(parameters))
			}
		}
	}
	return named > 0 || named < 0 && others > 0
}

// quality returns the q of a coding's parameters: 1 if there is none, 0 if it is
// malformed.
func quality(parameters string) float64 {
	parameters = strings.TrimSpace(parameters)
	if parameters == "" {
		return 1
	}
	name, value, _ := strings.Cut(parameters, "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !strings.EqualFold(strings.TrimSpace(name), "q") || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}

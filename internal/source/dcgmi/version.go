package dcgmi

import (
	"bytes"
	"context"
	"strings"
)

// Version names dcgmi and its version, "" before it has told.
func (s *Source) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// learnVersion asks dcgmi for its version, which needs no host engine, until it has
// told.
func (s *Source) learnVersion(ctx context.Context, dcgmi string) {
	if s.version.Load() != nil {
		return
	}
	said := s.ask(ctx, dcgmi, []string{"--version"})
	if number := parseVersion(said.stdout); number != "" {
		name := "dcgmi " + number
		s.version.Store(&name)
	}
}

// longestVersion is far beyond any, such as 4.4.1.
const longestVersion = 32

// parseVersion reads what dcgmi prints, a line such as "dcgmi  version: 4.4.1"; ""
// where there is none.
func parseVersion(output []byte) string {
	for line := range bytes.Lines(output) {
		_, number, is := strings.Cut(string(line), "version:")
		number = strings.TrimSpace(number)
		if is && number != "" && len(number) <= longestVersion && strings.Trim(number, "0123456789.") == "" {
			return number
		}
	}
	return ""
}

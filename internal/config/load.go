package config

import "github.com/kpulse/kpulse-proxy/internal/diag"

// maxFile is the largest file that is read, in bytes. The example is a hundredth
// of it; what is larger is not a configuration.
const maxFile = 1 << 20

// Load reads the file at path. Its error is diag.Problems where the file could be read
// but says something wrong.
func Load(path string) (Config, error) {
	body, err := diag.Read(path, "config file", maxFile)
	if err != nil {
		return Config{}, err
	}
	return Parse(path, body)
}

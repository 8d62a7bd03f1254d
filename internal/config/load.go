package config

import "github.com/kpulse/kpulse-proxy/internal/userfile"

// maxFile is the largest file that is read, in bytes. The example is a hundredth
// of it; what is larger is not a configuration.
const maxFile = 1 << 20

// Load reads the file at path. Its error is userfile.Problems where the file could be read
// but says something wrong.
func Load(path string) (Config, error) {
	body, err := userfile.Read(path, "config file", maxFile)
	if err != nil {
		return Config{}, err
	}
	return Parse(path, body)
}

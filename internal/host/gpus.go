package host

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// GPU is a board as NVIDIA's driver describes it in /proc.
type GPU struct {
	UUID     string // "" where the driver has not asked the board for it
	PCIBusID string // such as 0000:41:00.0
	minor    string
}

// GPUs returns, in the order of their PCI addresses, in which CUDA counts them, the boards
// that this process may open: a cgroup of devices refuses others, and a container does not
// have them. proc and dev are where these file systems are mounted. None is opened, which
// would wake it. It returns nil where that cannot be known: there is no driver, or no board
// can be opened at all.
func GPUs(proc, dev string) (gpus []GPU) {
	for _, g := range Boards(proc) {
		if g.minor == "" {
			return nil
		}
		const readWrite = 6 // R_OK|W_OK of access(2), which asks the cgroup too
		if syscall.Access(filepath.Join(dev, "nvidia"+g.minor), readWrite) == nil {
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// Boards returns all boards of the machine in the order of their PCI addresses, whoever may
// open them; nil where that cannot be known. proc is where procfs is mounted.
func Boards(proc string) (gpus []GPU) {
	files, _ := filepath.Glob(filepath.Join(proc, "driver", "nvidia", "gpus", "*", "information"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		g := parseGPU(text)
		if g.PCIBusID == "" {
			return nil
		}
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b GPU) int { return cmp.Compare(strings.ToLower(a.PCIBusID), strings.ToLower(b.PCIBusID)) })
	return gpus
}

// parseGPU reads lines such as `GPU UUID:  GPU-…`.
func parseGPU(text []byte) (g GPU) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "GPU UUID":
			if !strings.Contains(value, "?") {
				g.UUID = value
			}
		case "Bus Location":
			g.PCIBusID = value
		case "Device Minor":
			g.minor = value
		}
	}
	return g
}

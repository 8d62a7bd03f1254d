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
	UUID     string // "" if the driver has not asked the board for it
	PCIBusID string // such as 0000:41:00.0
	// Instances are the ids of the MIG instances that this process may open, nil if there
	// are none or that is not known. Boards leaves them out.
	Instances []string
	minor     string
}

// GPUs returns, in the order of their PCI addresses, in which CUDA counts them, the boards
// that this process may open: a cgroup of devices refuses others, and a container does not
// have them. proc and dev are where these file systems are mounted. None is opened, which
// would wake it. It returns nil if that cannot be known: there is no driver, or no board
// can be opened at all.
func GPUs(proc, dev string) (gpus []GPU) {
	for _, g := range Boards(proc) {
		if g.minor == "" {
			return nil
		}
		if syscall.Access(filepath.Join(dev, "nvidia"+g.minor), mayRead|mayWrite) == nil {
			g.Instances = instances(proc, dev, g.minor)
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// Modes of access(2), which asks the cgroup too.
const (
	mayWrite = 2
	mayRead  = 4
)

// instances returns the ids of those MIG instances of a board whose capability this process
// may open, as NVIDIA's guide to MIG describes the files; nil if it may open none: the
// driver makes their nodes when they are asked for.
func instances(proc, dev, minor string) (ids []string) {
	files, _ := filepath.Glob(filepath.Join(proc, "driver", "nvidia", "capabilities", "gpu"+minor, "mig", "gi*", "access"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, number, _ := strings.Cut(string(text), "DeviceFileMinor:")
		number, _, _ = strings.Cut(strings.TrimSpace(number), "\n")
		if syscall.Access(filepath.Join(dev, "nvidia-caps", "nvidia-cap"+strings.TrimSpace(number)), mayRead) == nil && number != "" {
			ids = append(ids, strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "gi"))
		}
	}
	return ids
}

// Boards returns all boards of the machine in the order of their PCI addresses, including those
// that this process may not open; nil if that is unknown. proc is where procfs is mounted.
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

// Minors returns the UUIDs of the machine's boards by the number of their device file: 0 is
// /dev/nvidia0. proc is where procfs is mounted.
func Minors(proc string) map[string]string {
	uuids := map[string]string{}
	for _, g := range Boards(proc) {
		if g.minor != "" && g.UUID != "" {
			uuids[g.minor] = g.UUID
		}
	}
	return uuids
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

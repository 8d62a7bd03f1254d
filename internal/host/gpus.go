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
	UUID     string // "" if the driver has not read it from the board
	PCIBusID string // such as 0000:41:00.0
	// Instances are the ids of the MIG instances that this process may open, nil for none
	// or unknown. Boards does not set them.
	Instances []string
	minor     string
}

// GPUs returns the boards that this process may open, in the order of their PCI addresses,
// as CUDA counts them: a device cgroup refuses the others, and a container lacks them. proc
// and dev are the mount points of these file systems. No board is opened, which would wake
// it. GPUs returns nil if this is unknown: there is no driver, or no board may be opened.
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

// Modes of access(2), which also checks the cgroup.
const (
	mayWrite = 2
	mayRead  = 4
)

// instances returns the ids of the MIG instances of a board whose capability files, which
// NVIDIA's guide to MIG describes, this process may open; nil if it may open none: the
// driver makes their nodes on demand.
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
// that this process may not open; nil if unknown. proc is the mount point of procfs.
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
// /dev/nvidia0. proc is the mount point of procfs.
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

package dcgm

import (
	"context"
	"math"
	"os/exec"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// processQuery asks nvidia-smi for compute processes; it has no such query for graphics processes.
var processQuery = []string{"--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits"}

// Processes implements source.ProcessLister: it returns the compute processes of this machine, as nvidia-smi lists them.
func (s *Source) Processes(ctx context.Context) ([]source.Process, error) {
	if !s.local {
		return nil, &source.Error{Failure: source.Unsupported, Cause: "the processes of " + s.host + " cannot be seen from here", Remedy: "run kpulse-proxy there"}
	}
	smi, err := s.opts.lookPath("nvidia-smi")
	if err != nil {
		return nil, &source.Error{
			Failure: source.Unsupported, Cause: "nvidia-smi, which lists processes, was not found",
			Remedy: "check that it is in PATH; it comes with the driver", Err: err,
		}
	}
	got := s.ask(ctx, smi, processQuery)
	if got.err != nil || got.code != 0 || got.signal != 0 {
		e := &source.Error{
			Failure: source.Broken, Cause: "nvidia-smi does not list processes" + quoted(got.printed), Err: got.err,
			Remedy: "see what it says, and whether it hangs: nvidia-smi " + strings.Join(processQuery, " "),
		}
		if got.err != nil {
			e.Failure, e.Cause = source.Timeout, e.Cause+": "+got.err.Error()
		}
		return nil, e
	}
	all := parseProcesses(got.stdout)
	for i := range all {
		for _, place := range s.MIGPlaces() {
			if all[i].UUID == place.UUID {
				all[i].UUID, all[i].Instance = place.Board, place.Instance
			}
		}
	}
	return all, nil
}

// parseProcesses reads nvidia-smi's answer to processQuery: a line for each
// process, with its memory in MiB. It skips other lines.
func parseProcesses(output []byte) []source.Process {
	all := []source.Process{}
	for line := range strings.Lines(string(output)) {
		cells := strings.Split(line, ",")
		if len(cells) != 3 {
			continue
		}
		pid, err := strconv.ParseInt(strings.TrimSpace(cells[0]), 10, 32)
		uuid := strings.TrimSpace(cells[1])
		if err != nil || pid <= 0 || !strings.HasPrefix(uuid, "GPU-") && !strings.HasPrefix(uuid, "MIG-") {
			continue
		}
		p := source.Process{PID: int(pid), UUID: uuid, MemoryUsed: math.NaN(), Kind: canonical.ProcessCompute, Utilization: math.NaN()}
		if n, err := strconv.ParseUint(strings.TrimSpace(cells[2]), 10, 32); err == nil {
			p.MemoryUsed = float64(n << 20)
		}
		all = append(all, p)
	}
	return all
}

// Visible asks nvidia-smi which boards this process may use, in its order, which is CUDA's: their UUIDs and PCI addresses.
// It returns nil if there is no nvidia-smi, or if nvidia-smi does not list them all, as when one is lost. It may take
// askTimeout.
func Visible(ctx context.Context) (boards []canonical.Device) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	got := (&asker{}).ask(ctx, path, []string{"--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"})
	if got.err != nil || got.code != 0 || got.signal != 0 {
		return nil
	}
	for line := range lines(got.stdout) {
		uuid, bus, _ := strings.Cut(line, ",")
		if uuid = gpuUUID(uuid); uuid != "" {
			boards = append(boards, canonical.Device{UUID: uuid, PCIBusID: known(bus)})
		}
	}
	return boards
}

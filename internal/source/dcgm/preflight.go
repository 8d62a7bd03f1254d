package dcgm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// exporterURL is where a dcgm-exporter on this machine answers by default.
const exporterURL = "http://localhost:9400/metrics"

// probes look at the machine before dcgmi is started.
type probes struct {
	// LookPath finds a command, like exec.LookPath.
	LookPath func(file string) (string, error)
	// Commands lists the processes of this machine: a path or name, and the arguments, each after a NUL.
	Commands func() []string
	// Fetch returns the beginning of the page at exporterURL, or an error if there is none.
	Fetch func(ctx context.Context) ([]byte, error)
	// Instances lists, in a stable order, the driver's MIG instances on this machine: the directories that it keeps
	// for them.
	Instances func() []string
}

// realProbes look at the real machine.
var realProbes = probes{
	LookPath:  exec.LookPath,
	Commands:  commands,
	Fetch:     func(ctx context.Context) ([]byte, error) { return fetch(ctx, exporterURL) },
	Instances: instances,
}

// Check returns, as a *source.Error, a problem that waiting is not likely to solve, so that a program can exit before
// it serves: what preflight finds, a dcgmi that cannot be run, and chosen devices that do not exist. A host engine
// that is down or slow is not such a problem: Read returns that error, and retries. Check may take a quarter of a
// minute, which the first Read then saves.
func (s *Source) Check(ctx context.Context) error {
	path, err := s.preflight(ctx)
	if err != nil {
		return err
	}
	v, err := s.settle(ctx, path)
	if err == nil {
		// A running source continues with fewer GPUs, but at the start the selection may be mistyped.
		if selection, _ := v.inventory.Choose(s.opts.Choose); selection.Missing != nil {
			err = unfit(selection.Missing)
		}
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	e := source.AsError(err)
	if e.Failure == source.Unsupported || e.Failure == source.PermissionDenied ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOEXEC) || errors.As(err, new(selectionError)) {
		return e
	}
	return nil
}

// preflight returns the path of dcgmi, or, as a *source.Error that says what to type next, why dcgmi cannot be
// started: it is missing or not executable, the name of its host engine would be read as an option, or a dcgm-exporter
// already reads the same GPUs. It does not check whether the host engine answers.
func (s *Source) preflight(ctx context.Context) (string, error) {
	if strings.HasPrefix(s.opts.Host, "-") {
		return "", &source.Error{
			Failure: source.Unsupported,
			Cause:   "--dcgm.host=" + printable(s.opts.Host) + " is an option, not a host",
			Remedy:  "write a name or an address: --dcgm.host=node7, --dcgm.host=node7:5555 or --dcgm.host=unix:///run/nv-hostengine.sock",
		}
	}
	path, err := s.command()
	if err != nil || !s.local { // an exporter here does not read the GPUs of another host
		return path, err
	}
	seen := s.opts.probes.exporter(ctx)
	if seen == "" || s.countsTogether(ctx, path) {
		return path, nil
	}
	return "", &source.Error{
		Failure: source.ExporterCollision,
		Cause:   seen + ", apparently with a host engine of its own: on GPUs before Hopper two host engines cannot both read the profiling counters",
		Remedy: "read it instead: kpulse-proxy --backend=prometheus --source=" + exporterURL +
			"; or let it use this host engine: dcgm-exporter -r localhost:5555; or stop it first",
	}
}

// countsTogether reports whether the GPUs are known to count all profiling fields at once: from Hopper on, which alone
// count the integer pipe (1016), each host engine has counters of its own.
func (s *node) countsTogether(ctx context.Context, dcgmi string) bool {
	got := s.askEngine(ctx, dcgmi, "profile", "-l")
	return got.failure(dcgmi, "profile -l", "profiling") == nil && slices.Contains(Profiled(got.stdout), 1016)
}

// command finds dcgmi.
func (s *node) command() (string, error) {
	path, err := s.opts.probes.LookPath(s.opts.Path)
	if err == nil {
		return path, nil
	}
	found := s.opts.Path
	if !strings.Contains(found, "/") { // LookPath skips files in PATH that may not be executed
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if info, e := os.Stat(filepath.Join(dir, s.opts.Path)); e == nil && info.Mode().IsRegular() {
				found, err = filepath.Join(dir, s.opts.Path), fs.ErrPermission
				break
			}
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", &source.Error{
			Failure: source.PermissionDenied,
			Cause:   found + " exists but may not be executed",
			Remedy:  "chmod a+rx " + found + ", or run kpulse-proxy as a user who may: ls -l " + found,
			Err:     err,
		}
	}
	return "", &source.Error{
		Failure: source.HostEngineUnavailable,
		Cause:   s.opts.Path + " was not found",
		Remedy: "install DCGM (package datacenter-gpu-manager, or datacenter-gpu-manager-4-core) and check that dcgmi is in PATH; " +
			"if dcgm-exporter runs, use --backend=prometheus",
		Err: err,
	}
}

// exporter describes a dcgm-exporter with a host engine of its own, as far as is known, "" for none.
func (p *probes) exporter(ctx context.Context) string {
	for _, command := range p.Commands() {
		words := strings.Split(command, "\x00")
		if filepath.Base(words[0]) != "dcgm-exporter" {
			continue
		}
		if slices.ContainsFunc(words[1:], namesEngine) {
			return ""
		}
		return "a dcgm-exporter runs on this machine (" + printable(words[0]) + ")"
	}
	page, err := p.Fetch(ctx)
	// This proxy may itself listen on the exporter's port.
	if err == nil && !bytes.Contains(page, []byte("\nkpulse_")) && (bytes.Contains(page, []byte("DCGM_FI_")) || bytes.Contains(page, []byte("\ndcgm_"))) {
		return "an exporter of GPU metrics answers at " + exporterURL
	}
	return ""
}

// engineVariable is the environment variable for the exporter's flag -r, which names a host engine that others use too.
const engineVariable = "DCGM_REMOTE_HOSTENGINE_INFO="

// namesEngine reports whether an argument or a variable of an exporter names a host engine.
func namesEngine(word string) bool {
	flag, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return flag == "r" || flag == "remote-hostengine-info" || strings.HasPrefix(word, engineVariable)
}

// commands reads from /proc the command line of every process, which the process may have changed, and for an exporter
// its variables, if we may read them.
func commands() (all []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		command := strings.TrimSuffix(string(text), "\x00")
		word, _, _ := strings.Cut(command, "\x00")
		if err != nil || word == "" {
			continue
		}
		if filepath.Base(word) == "dcgm-exporter" {
			environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
			command += "\x00" + string(environ)
		}
		all = append(all, command)
	}
	return all
}

// instances reads the directories of GPU instances and of the compute instances in them (NVIDIA's MIG user guide,
// "Device Nodes and Capabilities").
func instances() []string {
	const dir = "/proc/driver/nvidia/capabilities/gpu*/mig/gi*"
	outer, _ := filepath.Glob(dir)
	inner, _ := filepath.Glob(dir + "/ci*")
	return append(outer, inner...)
}

// fetch gets at most 8 MiB of a page, without proxies, within a second.
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 8<<20))
}

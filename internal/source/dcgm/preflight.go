package dcgm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Check returns, as a *source.Error, a problem that waiting is not likely to solve, so that a program can exit before
// it serves: a dcgmi that is missing or cannot be run, and chosen devices that do not exist. A host engine that is down or
// slow is not such a problem: Read returns that error, and retries. Check may take a quarter of a minute, which the first
// Read then saves.
func (s *Source) Check(ctx context.Context) error {
	path, err := s.command()
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
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOEXEC) || errors.Is(err, errSelection) {
		return e
	}
	return nil
}

// command finds dcgmi.
func (s *node) command() (string, error) {
	path, err := s.opts.lookPath(s.opts.Path)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission):
		return "", unstartable(s.opts.Path, err)
	}
	return "", &source.Error{
		Failure: source.HostEngineUnavailable,
		Cause:   s.opts.Path + " was not found",
		Remedy: "install DCGM (package datacenter-gpu-manager, or datacenter-gpu-manager-4-core) and check that dcgmi is in PATH, " +
			"executable for this user; if dcgm-exporter runs, use --backend=prometheus",
		Err: err,
	}
}

// exporterURL is where a dcgm-exporter on this machine answers by default.
const exporterURL = "http://localhost:9400/metrics"

// collision explains by an exporter with a host engine of its own that another program holds the profiling counters, if
// one answers: on GPUs before Hopper two host engines cannot both read them.
func (s *Source) collision(e *source.Error) *source.Error {
	if e.Failure != source.ReservationDenied || !s.local || !s.opts.exporter() {
		return e
	}
	return &source.Error{
		Failure: source.ExporterCollision,
		Cause:   e.Cause + "; an exporter of GPU metrics answers at " + exporterURL + ", apparently with a host engine of its own",
		Remedy: "read it instead: kpulse-proxy --backend=prometheus --source=" + exporterURL +
			"; or let it use this host engine: dcgm-exporter -r localhost:5555; or stop it",
		Err: e,
	}
}

// exporterPatience is how long an exporter may take to answer.
const exporterPatience = time.Second

// isExporter reports whether a dcgm-exporter, not a proxy such as this one, answers at a URL in time.
func isExporter(url string, within time.Duration) bool {
	client := http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	return err == nil && !bytes.Contains(page, []byte("\nkpulse_")) && (bytes.Contains(page, []byte("DCGM_FI_")) || bytes.Contains(page, []byte("\ndcgm_")))
}

package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// stateFile keeps the faults of boards, so that a restart of the program forgets no verdict. Its
// methods may be called from any goroutine.
type stateFile struct {
	path   string
	logger *slog.Logger
	// unread is set if the file is there and could not be read: what was fatal is then not known.
	unread *canonical.Failure
	bootID string // of this machine, "" if unknown

	mu        sync.Mutex
	state     savedState
	unwritten *canonical.Failure // set if the last write failed
}

// savedState is the file's content. Faults are those of each source, by its name, and those of switches.
type savedState struct {
	BootID string                       `json:"boot_id"`
	Faults map[string][]canonical.Fault `json:"faults"`
	// Doubted is set if an earlier file could not be read, so that there may be other faults.
	Doubted bool `json:"doubted,omitempty"`
	// DoubtedIn is the boot in which that was found, "" if unknown.
	DoubtedIn string `json:"doubted_in,omitempty"`
}

// openState reads a state file. One that is not there yet is empty.
func openState(path, bootID string, logger *slog.Logger) *stateFile {
	f := &stateFile{path: path, logger: logger, bootID: bootID, state: savedState{Faults: map[string][]canonical.Fault{}}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.save() // if that fails, it is told now, not at the first fault
		return f
	}
	if err == nil {
		f.state = savedState{}
		err = json.Unmarshal(text, &f.state)
	}
	switch {
	case err != nil:
	case f.state.Faults == nil:
		err = errors.New("it has no faults")
	case f.state.Doubted:
		err = errors.New("it could not be read at an earlier start")
	}
	if err != nil {
		if !f.state.Doubted {
			f.state.Doubted, f.state.DoubtedIn = true, cmp.Or(f.state.BootID, bootID)
		}
		if f.state.Faults == nil {
			f.state.Faults = map[string][]canonical.Fault{}
		}
		f.unread = &canonical.Failure{
			Cause:  fmt.Sprintf("the state file %s cannot be read (%v): no GPU counts as ok until it is reset, or resolved by POST /-/resolve?uuid=…", path, err),
			Remedy: "look at the nodes' logs for fatal XIDs, resolve what is dealt with, or remove the file and restart",
		}
		logger.Warn("cannot read the state file: the health of every GPU is unknown", "file", path, "cause", err, "remedy", f.unread.Remedy)
		return f
	}
	f.save()
	return f
}

// doubts reports whether a source may have had faults at the program's start that are not known. A
// reboot of this machine, if the source reads it, has resolved them.
func (f *stateFile) doubts(here bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	rebooted := f.bootID != "" && f.state.DoubtedIn != "" && f.state.DoubtedIn != f.bootID
	return f.unread != nil && !(here && rebooted)
}

// notes returns the problems with the file, none if there is none.
func (f *stateFile) notes() (all []canonical.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, failure := range []*canonical.Failure{f.unread, f.unwritten} {
		if failure != nil {
			all = append(all, canonical.Note{Cause: failure.Cause, Remedy: failure.Remedy})
		}
	}
	return all
}

// switches is the name under which the state file has the fatal SXIDs of the kernel's log.
const switches = "--kernel-log"

// of returns the faults of a source at the program's start, without those that a reboot of this
// machine, if the source reads it, has resolved since.
func (f *stateFile) of(source string, here bool) []canonical.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if here && f.bootID != "" && f.state.BootID != "" && f.state.BootID != f.bootID {
		if n := len(f.state.Faults[source]); n > 0 {
			delete(f.state.Faults, source)
			f.logger.Info("the machine was rebooted since: earlier fatal XIDs and lost GPUs are forgotten", "source", source, "faults", n)
		}
		return nil
	}
	return slices.Clone(f.state.Faults[source])
}

// adopt gives the faults of all sources to one that is read alone: its URL may have been written otherwise.
func (f *stateFile) adopt(source string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, faults := range f.state.Faults {
		if name != source && name != switches {
			f.state.Faults[source] = append(f.state.Faults[source], faults...)
			delete(f.state.Faults, name)
		}
	}
}

// unreadSources returns the names of sources whose faults the file has, and which are not among those that are read.
func (f *stateFile) unreadSources(names []string) (others []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.state.Faults)) {
		if name != switches && !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	return others
}

// keep writes the faults of a source, and reports whether it did.
func (f *stateFile) keep(source string, faults []canonical.Fault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	saved := slices.Clone(faults)
	for i := range saved {
		for _, text := range []*string{&saved[i].Hostname, &saved[i].GPU, &saved[i].UUID, &saved[i].PCIBusID, &saved[i].Model} {
			*text = strings.Clone(*text) // of the reading's memory
		}
	}
	if f.state.Faults[source] = saved; len(saved) == 0 {
		delete(f.state.Faults, source)
	}
	f.state.BootID = f.bootID
	return f.save()
}

// save writes the file, and reports whether it could: a failure is told of in the log once, and on the landing page while
// it lasts. The caller holds mu.
func (f *stateFile) save() bool {
	err := f.write()
	if err == nil {
		f.unwritten = nil
		return true
	}
	if f.unwritten == nil {
		f.logger.Warn("cannot write the state file: a restart would forget fatal XIDs and lost GPUs", "file", f.path, "cause", err, "remedy", unwritable)
	}
	f.unwritten = &canonical.Failure{Cause: fmt.Sprintf("the state file cannot be written (%v): a restart would forget fatal XIDs and lost GPUs", err), Remedy: unwritable}
	return false
}

const unwritable = "create its folder, make that writable for the proxy, or name another file with --state.file"

// write replaces the file, so that a reader finds the old or the new one whole.
func (f *stateFile) write() error {
	text, err := json.MarshalIndent(f.state, "", "  ")
	if err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = aside.Write(append(text, '\n'))
	err = errors.Join(err, aside.Sync(), aside.Close())
	if err == nil {
		err = os.Rename(aside.Name(), f.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(aside.Name()))
	}
	return err
}

// stateFile returns the name of the state file, "" for none. systemd sets STATE_DIRECTORY for a unit
// with a StateDirectory.
func (o *options) stateFile() string {
	if folder, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); o.StateFile == "" && folder != "" {
		return filepath.Join(folder, "state.json")
	}
	return o.StateFile
}

// readBootID returns the id of this machine's boot, "" if it is unknown.
func readBootID(proc string) string {
	text, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

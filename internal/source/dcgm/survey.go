package dcgm

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// surveyEvery is the time between two surveys of the node: an instance that was made since is not seen before.
	surveyEvery = time.Minute
	// surveySoon is the same while an entity of the readings, or what a board counts, is not known, or a board is lost:
	// dmon does not watch it, so no row shows that it is back.
	surveySoon = 20 * time.Second
	// lookEvery is how often it is checked whether a survey is due.
	lookEvery = time.Second
)

// view is what is known about the node's devices, and which of them are watched. It is replaced, never modified.
type view struct {
	inventory Inventory
	mig       []MIGPlace
	entities  string // dmon's -i
	wanted    []bool // whether each device of the inventory is watched
	extras    []int  // the multiplexed fields that are counted
	// epoch changes when entities or extras change, or entities may identify other devices. Then life ends, and with it
	// the children of the epoch, whose output is void.
	epoch uint64
	life  context.Context
	end   context.CancelFunc
}

// node surveys the devices of a host engine's node.
type node struct {
	opts  Options
	local bool // the host engine is on this machine
	ask   func(ctx context.Context, path string, args []string) answer
	life  context.Context // of the source

	view    atomic.Pointer[view] // nil before the first survey; stored by who has locked surveying
	stale   atomic.Bool          // the view must not be trusted at the next start
	wanted  atomic.Bool          // a survey should follow soon
	version atomic.Value         // a string, once it is known

	surveying sync.Mutex // locked during a survey, guards what follows
	last      outputs    // the last answers about names, which a slow command must not remove from the series
	extras    []int      // as in view
	logged    string     // the last problem that was logged
}

// settle returns the view for a child that starts now. It surveys the node if that has not happened, or a stream has
// failed since: after a restart, the host engine may number the boards differently.
func (s *node) settle(ctx context.Context, path string) (*view, error) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	if v := s.view.Load(); v != nil && !s.stale.Load() {
		return v, nil
	}
	s.stale.Store(false)
	if err := s.survey(ctx, path); err != nil {
		s.stale.Store(true)
		return nil, err
	}
	return s.view.Load(), nil
}

// warn logs that readings continue although the view is not what it should be, once for each cause, "" for none.
func (s *node) warn(message, cause, remedy string) {
	if cause != "" && cause != s.logged {
		s.opts.Logger.Warn(message, "reads", s.Name(), "cause", cause, "remedy", remedy)
	}
	s.logged = cause
}

// survey asks for the devices of the node and makes them the view. The caller has locked surveying.
func (s *node) survey(ctx context.Context, path string) error {
	n, err := s.discover(ctx, path)
	if err != nil {
		return err
	}
	selection, err := n.Choose(s.opts.Choose)
	if err != nil {
		return unfit(err)
	}
	v := &view{inventory: n, mig: n.MIGPlaces(), entities: n.Entities(&selection), wanted: selection.Chosen}
	switch {
	case len(n.Devices) == 0:
		return refused("dcgmi discovery -l", "device", 0, 0, "The specified group is empty")
	case v.entities == "" && selection.All:
		return unfit(errors.New("the host engine reads none of the GPUs"))
	case v.entities == "":
		return unfit(errors.New("the host engine reads none of the GPUs chosen by " + selection.By))
	}
	missing := ""
	if selection.Missing != nil {
		missing = selection.Missing.Error()
	}
	s.warn("some of the chosen GPUs do not exist; readings continue with the others", missing, seeGPUs)
	s.askExtras(ctx, path)
	v.extras = s.extras
	s.adopt(v)
	return nil
}

// adopt makes v the view. If that begins a new epoch, all streams restart.
func (s *node) adopt(v *view) {
	old := s.view.Load()
	if old == nil {
		old = &view{end: func() {}}
	}
	switch {
	case old.epoch == 0 || v.entities != old.entities || !slices.Equal(v.extras, old.extras) || Moved(&old.inventory, &v.inventory):
		v.epoch = old.epoch + 1
		v.life, v.end = context.WithCancel(s.life)
		s.view.Store(v)
		old.end()
		if v.epoch > 1 {
			s.opts.Logger.Info("dcgmi is restarted", "reads", s.Name(), "reason", "the node's GPUs or MIG instances, or their profiling fields, have changed")
		}
	case !reflect.DeepEqual(&old.inventory, &v.inventory):
		v.epoch, v.life, v.end = old.epoch, old.life, old.end
		s.view.Store(v)
	}
}

// discover asks for the devices of the node. It fails if dcgmi does not list the boards, or no longer lists instances; it
// leaves out anything else that is unavailable.
func (s *node) discover(ctx context.Context, dcgmi string) (Inventory, error) {
	o, list, tree := s.askAll(ctx, dcgmi)
	o.discovery = list.stdout
	if !listsAll(list.stdout) {
		if e := list.failure(dcgmi, "discovery -l", "identity"); e != nil {
			return Inventory{}, e
		}
		if len(parseDiscovery(list.stdout)) == 0 {
			return Inventory{}, refused("dcgmi discovery -l", "identity", 0, 0, list.printed)
		}
	}
	if strings.Contains(string(list.stdout), "Note: Use -a flag to show all GPUs") {
		if all := s.askEngine(ctx, dcgmi, "discovery", "-l", "-a"); listsAll(all.stdout) {
			o.discovery = all.stdout
		}
	}
	v := s.view.Load()
	if e := tree.failure(dcgmi, "discovery -c", "identity"); e == nil {
		o.hierarchy = tree.stdout
	} else if v != nil && slices.ContainsFunc(v.inventory.Devices, func(d Device) bool { return d.IsInstance() }) {
		return Inventory{}, e
	}
	for _, kept := range [][2]*[]byte{{&o.driver, &s.last.driver}, {&o.list, &s.last.list}, {&o.links, &s.last.links}} {
		if len(*kept[0]) == 0 {
			*kept[0] = *kept[1]
		}
	}
	s.last = o
	n := flatten(o.parse())
	if v != nil {
		n.Remember(&v.inventory)
	}
	return n, nil
}

// askAll runs the commands of a survey side by side: those of dcgmi and, if present, of nvidia-smi, which knows nothing of
// another host's GPUs.
func (s *node) askAll(ctx context.Context, dcgmi string) (o outputs, list, tree answer) {
	var asked sync.WaitGroup
	asked.Go(func() { list = s.askEngine(ctx, dcgmi, "discovery", "-l") })
	asked.Go(func() { tree = s.askEngine(ctx, dcgmi, "discovery", "-c") })
	asked.Go(func() { s.learnVersion(ctx, dcgmi) })
	asked.Go(func() { o.driver = s.askEngine(ctx, dcgmi, "dmon", "-c", "1", "-d", "100", "-e", "1").stdout })
	if smi, err := s.opts.lookPath("nvidia-smi"); err == nil && s.local {
		// nvidia-smi ends with an error if a board is lost, but still prints the others.
		output := func(args ...string) []byte { return s.ask(ctx, smi, args).stdout }
		asked.Go(func() { o.links = output("nvlink", "-s") })
		asked.Go(func() {
			if o.list = output("-L"); strings.Contains(string(o.list), "(UUID: MIG-") {
				o.report = output("-q", "-x")
			}
		})
	}
	asked.Wait()
	return o, list, tree
}

// askEngine runs a dcgmi that talks to the host engine.
func (s *node) askEngine(ctx context.Context, dcgmi string, args ...string) answer {
	return s.ask(ctx, dcgmi, s.toEngine(args...))
}

// toEngine adds dcgmi's option for the host engine to args, unless it is the local one.
func (s *node) toEngine(args ...string) []string {
	if s.opts.Host != "" {
		args = append(args, "--host", s.opts.Host)
	}
	return args
}

// askExtras asks which multiplexed fields the first board counts; another model may refuse some: see leavesOut. If there
// is no answer, the known fields stay, which are none at first, and it is asked again soon.
func (s *node) askExtras(ctx context.Context, dcgmi string) {
	if s.opts.Fields != nil && !slices.ContainsFunc(s.opts.Fields, func(id int) bool { return fieldByID(id).Multiplexed }) {
		return
	}
	got := s.askEngine(ctx, dcgmi, "profile", "-l")
	if got.failure(dcgmi, "profile -l", "profiling") != nil {
		s.wanted.Store(true)
		return
	}
	s.extras = profiled(got.stdout)
}

// errSelection is wrapped by errors about devices that the node does not have.
var errSelection = errors.New("no such devices")

const seeGPUs = "see which GPUs the host engine knows: dcgmi discovery -l"

// unfit explains that the node does not have the chosen devices, which is retried: a GPU may come back.
func unfit(err error) *source.Error {
	return &source.Error{Failure: source.Broken, Cause: err.Error(), Remedy: seeGPUs, Err: errSelection}
}

// Version implements source.Versioned.
func (s *node) Version() string {
	version, _ := s.version.Load().(string)
	return version
}

// learnVersion asks dcgmi for its version, as in "dcgmi  version: 4.4.1", unless it is known.
func (s *node) learnVersion(ctx context.Context, dcgmi string) {
	if s.Version() != "" {
		return
	}
	for line := range lines(s.ask(ctx, dcgmi, []string{"--version"}).stdout) {
		_, number, _ := strings.Cut(line, "version:")
		if number = strings.TrimSpace(number); number != "" && len(number) < 32 && strings.Trim(number, "0123456789.") == "" {
			s.version.Store("dcgmi " + number)
		}
	}
}

// MIGPlaces returns the known places of the node's compute instances. The slice stays the same while nothing changes.
// Any goroutine may call it.
func (s *node) MIGPlaces() []MIGPlace {
	if v := s.view.Load(); v != nil {
		return v.mig
	}
	return nil
}

// watch keeps the view current until ctx ends: it surveys the node at intervals, and logs if that fails, while the view
// stays.
func (s *node) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.due(time.Since(last)) {
			s.resurvey(ctx)
			last = time.Now()
		}
	}
}

// due reports whether a survey is due so long after the last one.
func (s *node) due(since time.Duration) bool {
	v := s.view.Load()
	if v == nil {
		return false
	}
	lost := slices.ContainsFunc(v.inventory.Devices, func(d Device) bool { return d.Lost })
	return since >= surveyEvery || since >= surveySoon && (lost || s.wanted.Load())
}

// resurvey surveys the node while the streams run.
func (s *node) resurvey(ctx context.Context) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	s.wanted.Store(false)
	path, err := s.command()
	if err == nil {
		err = s.survey(ctx, path)
	}
	if err != nil && ctx.Err() == nil {
		e := source.AsError(err)
		s.warn("the GPUs cannot be listed; readings continue with the known ones", e.Cause, e.Remedy)
	}
}

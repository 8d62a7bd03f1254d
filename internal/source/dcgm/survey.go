package dcgm

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// surveyEvery is the time between two surveys of the node.
	surveyEvery = 5 * time.Minute
	// surveyLost is the same while a board is lost: dmon does not watch the board, so no row shows that it is back.
	surveyLost = 30 * time.Second
	// surveySoon is the same while an entity of the readings, or what a board counts, is not known.
	surveySoon = 10 * time.Second
	// lookEvery is how often the driver's list of instances is read, which costs almost nothing.
	lookEvery = time.Second
	// recutPause is the time between a change of that list and a survey: instances are made one by one, and the host
	// engine detects them a little later.
	recutPause = 3 * time.Second
)

// view is what is known about the node's devices, and which of them are watched. It is replaced, never modified.
type view struct {
	inventory Inventory
	mig       []MIGPlace
	entities  string // dmon's -i
	wanted    []bool // whether each device of the inventory is watched
	extras    []int  // the multiplexed fields that all boards support
	// epoch changes when entities or extras change, or entities may identify other devices. The output of children of
	// earlier epochs is void.
	epoch uint64
}

// node surveys the devices of a host engine's node.
type node struct {
	opts  Options
	local bool // the host engine is on this machine
	ask   func(ctx context.Context, path string, args []string) answer
	// epochs is called when a new epoch begins.
	epochs func()

	view    atomic.Pointer[view]   // nil before the first survey; stored by who has locked surveying
	stale   atomic.Bool            // the view must not be trusted at the next start
	wanted  atomic.Bool            // a survey should follow soon
	version atomic.Pointer[string] // nil before it is known

	surveying sync.Mutex // locked during a survey, guards what follows
	last      Outputs    // the last answers about names, which a slow command must not remove from the series
	extras    []int      // as in view
	logged    string     // the last problem that was logged
}

// settle returns the view for a child that starts now. It surveys the node if that has not happened, or a stream has
// failed since: after a restart, the host engine may number the boards differently. If that fails, what was known
// before stays, unless dmon would fail too or the selection does not fit the node.
func (s *node) settle(ctx context.Context, path string) (*view, error) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	if v := s.view.Load(); v != nil && !s.stale.Load() {
		return v, nil
	}
	s.stale.Store(false)
	err := s.survey(ctx, path)
	if err == nil {
		return s.view.Load(), nil
	}
	s.stale.Store(true)
	v := s.view.Load()
	switch source.AsError(err).Failure {
	case source.HostEngineUnavailable, source.PermissionDenied, source.Unsupported:
		return nil, err
	}
	if v == nil || ctx.Err() != nil || errors.As(err, new(selectionError)) {
		return nil, err
	}
	s.wanted.Store(true)
	s.log(err.Error())
	return v, nil
}

// log logs that the view stays because a survey failed, once for each cause, "" for none.
func (s *node) log(cause string) {
	if cause != "" && cause != s.logged {
		s.opts.Logger.Warn("the GPUs cannot be listed; readings continue with the known ones", "reads", s.name(), "cause", cause)
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
	case selection.Missing != nil && s.logged != selection.Missing.Error():
		s.logged = selection.Missing.Error()
		s.opts.Logger.Warn("some of the chosen GPUs do not exist; readings continue with the others", "reads", s.name(), "cause", s.logged,
			"remedy", "see which GPUs the host engine knows: dcgmi discovery -l")
	case selection.Missing == nil:
		s.logged = ""
	}
	s.askExtras(ctx, path, n.OneOfEach(&selection))
	v.extras = s.extras
	s.adopt(v)
	return nil
}

// adopt makes v the view. If that begins a new epoch, all streams restart.
func (s *node) adopt(v *view) {
	old := s.view.Load()
	if old == nil {
		v.epoch = 1
		s.view.Store(v)
		return
	}
	v.epoch = old.epoch
	changed := v.entities != old.entities || !slices.Equal(v.extras, old.extras) || Moved(&old.inventory, &v.inventory)
	if changed {
		v.epoch++
	}
	if changed || !Equal(&old.inventory, &v.inventory) {
		s.view.Store(v)
	}
	if changed {
		s.opts.Logger.Info("dcgmi is restarted", "reads", s.name(), "reason", "the node's GPUs or MIG instances, or their profiling fields, have changed")
		s.epochs()
	}
}

// discover asks for the devices of the node. It fails if dcgmi does not list the boards, or no longer lists instances; it
// leaves out anything else that is unavailable.
func (s *node) discover(ctx context.Context, dcgmi string) (Inventory, error) {
	o, list, tree := s.askAll(ctx, dcgmi)
	// The command ends with an error behind the table if the host engine has no module for switches.
	whole := ListsAll(list.stdout)
	if e := list.failure(dcgmi, "discovery -l", "identity"); e != nil && !whole {
		return Inventory{}, e
	}
	if !whole && len(parseDiscovery(list.stdout)) == 0 {
		return Inventory{}, refused("dcgmi discovery -l", "identity", 0, 0, list.printed)
	}
	o.Discovery = list.stdout
	if ListsInactive(list.stdout) {
		if all := s.askEngine(ctx, dcgmi, "discovery", "-l", "-a"); ListsAll(all.stdout) {
			o.Discovery = all.stdout
		}
	}
	v := s.view.Load()
	if e := tree.failure(dcgmi, "discovery -c", "identity"); e == nil {
		o.Hierarchy = tree.stdout
	} else if v != nil && slices.ContainsFunc(v.inventory.Devices, func(d Device) bool { return d.IsInstance() }) {
		return Inventory{}, e
	}
	for _, kept := range []struct{ now, before *[]byte }{{&o.Query, &s.last.Query}, {&o.Links, &s.last.Links}, {&o.Texts, &s.last.Texts}} {
		if len(*kept.now) == 0 {
			*kept.now = *kept.before
		}
	}
	s.last = o
	n := Parse(&o)
	if v != nil {
		n.Remember(&v.inventory)
	}
	return n, nil
}

// askAll runs the commands of a survey side by side: those of dcgmi and, if present, of nvidia-smi, which knows nothing of
// another host's GPUs.
func (s *node) askAll(ctx context.Context, dcgmi string) (o Outputs, list, tree answer) {
	var asked sync.WaitGroup
	asked.Go(func() { list = s.askEngine(ctx, dcgmi, "discovery", "-l") })
	asked.Go(func() { tree = s.askEngine(ctx, dcgmi, "discovery", "-c") })
	asked.Go(func() { s.learnVersion(ctx, dcgmi) })
	o.TextColumns = s.opts.Page.Texts()
	if smi, err := s.opts.probes.LookPath("nvidia-smi"); err == nil && s.local {
		// nvidia-smi ends with an error if a board is lost, but still prints the others.
		output := func(args ...string) []byte { return s.ask(ctx, smi, args).stdout }
		asked.Go(func() { o.Query = output("--query-gpu="+QueryFields, "--format=csv,noheader,nounits") })
		asked.Go(func() { o.Links = output("nvlink", "-s") })
		asked.Go(func() {
			if o.List = output("-L"); o.HasMIG() {
				o.Report = output("-q", "-x")
			}
		})
	} else if !slices.Contains(o.TextColumns, 0) {
		o.TextColumns = append(o.TextColumns, 0) // the driver's version, which no other command gives
	}
	ids := make([]int, len(o.TextColumns))
	for i, text := range o.TextColumns {
		ids[i] = Texts[text].ID
	}
	if len(ids) > 0 {
		asked.Go(func() {
			o.Texts = s.askEngine(ctx, dcgmi, "dmon", "-c", "1", "-d", strconv.FormatInt(MinPeriod.Milliseconds(), 10), "-e", joined(ids)).stdout
		})
	}
	asked.Wait()
	return o, list, tree
}

// askEngine runs a dcgmi that talks to the host engine.
func (s *node) askEngine(ctx context.Context, dcgmi string, args ...string) answer {
	return s.ask(ctx, dcgmi, append(args, s.hostOption()...))
}

// hostOption returns dcgmi's option for the host engine, nil for the local one.
func (s *node) hostOption() []string {
	if s.opts.Host == "" {
		return nil
	}
	return []string{"--host", s.opts.Host}
}

// askExtras asks which multiplexed fields all boards, one of each model, support. If one board does not answer, the
// known fields stay, which are none at first, and all are asked again soon.
func (s *node) askExtras(ctx context.Context, dcgmi string, boards []int) {
	if s.opts.Fields != nil && !slices.ContainsFunc(s.opts.Fields, IsMultiplexed) {
		return
	}
	var common []int
	for i, board := range boards {
		got := s.askEngine(ctx, dcgmi, "profile", "-l", "-i", strconv.Itoa(board))
		if got.failure(dcgmi, "profile -l", "profiling") != nil {
			s.wanted.Store(true)
			return
		}
		its := Profiled(got.stdout)
		if i == 0 {
			common = its
		}
		common = slices.DeleteFunc(common, func(id int) bool { return !slices.Contains(its, id) })
	}
	s.extras = common
}

// selectionError is about devices that the node does not have.
type selectionError struct{ error }

// unfit explains that the node does not have the chosen devices.
func unfit(err error) *source.Error {
	return &source.Error{
		Failure: source.Broken, // and retried: a GPU may come back
		Cause:   err.Error(),
		Remedy:  "see which GPUs the host engine knows: dcgmi discovery -l",
		Err:     selectionError{err},
	}
}

// Version implements source.Versioned.
func (s *node) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// learnVersion asks dcgmi for its version, as in "dcgmi  version: 4.4.1", unless it is known.
func (s *node) learnVersion(ctx context.Context, dcgmi string) {
	if s.version.Load() != nil {
		return
	}
	for line := range lines(s.ask(ctx, dcgmi, []string{"--version"}).stdout) {
		_, number, _ := strings.Cut(line, "version:")
		if number = strings.TrimSpace(number); number != "" && len(number) < 32 && strings.Trim(number, "0123456789.") == "" {
			name := "dcgmi " + number
			s.version.Store(&name)
			return
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

// watch keeps the view current until ctx ends: it surveys the node when the driver's instances have changed, when an
// entity of the readings is not known, and at regular intervals.
func (s *node) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	instances, recut, last := s.opts.probes.Instances(), time.Time{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := s.opts.probes.Instances(); s.local && !slices.Equal(now, instances) {
			instances, recut = now, time.Now()
		}
		if s.due(time.Since(last)) || !recut.IsZero() && time.Since(recut) >= recutPause {
			s.resurvey(ctx)
			last, recut = time.Now(), time.Time{}
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
	return since >= surveyEvery || since >= surveyLost && lost || since >= surveySoon && s.wanted.Load()
}

// resurvey surveys the node while the streams run. If it fails, the view stays.
func (s *node) resurvey(ctx context.Context) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	s.wanted.Store(false)
	path, err := s.command()
	if err == nil {
		err = s.survey(ctx, path)
	}
	if err != nil && ctx.Err() == nil {
		s.log(err.Error())
	}
}

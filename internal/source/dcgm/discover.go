package dcgm

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// discover asks dcgmi and, if present, nvidia-smi for the devices of the node, concurrently. It
// fails if dcgmi does not list the boards, or no longer lists instances; it leaves out anything
// else that is unavailable. The caller has locked surveying.
func (s *Source) discover(ctx context.Context, dcgmi string) (Inventory, error) {
	var list, tree answer
	var o Outputs
	var asked sync.WaitGroup
	host := s.hostOption()
	asked.Go(func() { list = s.ask(ctx, dcgmi, slices.Concat([]string{"discovery", "-l"}, host)) })
	asked.Go(func() { s.learnVersion(ctx, dcgmi) })
	asked.Go(func() { tree = s.ask(ctx, dcgmi, slices.Concat([]string{"discovery", "-c"}, host)) })
	texts := s.opts.Page.Texts()
	// The local nvidia-smi knows nothing of another host's GPUs.
	if smi, err := s.opts.probes.LookPath("nvidia-smi"); err == nil && s.local {
		// nvidia-smi ends with an error if a board is lost, but still prints the others.
		output := func(args ...string) []byte { return s.ask(ctx, smi, args).stdout }
		asked.Go(func() {
			o.Query = output("--query-gpu="+QueryFields, "--format=csv,noheader,nounits")
		})
		asked.Go(func() { o.List = output("-L") })
		asked.Go(func() { o.Links = output("nvlink", "-s") })
		asked.Wait()
		if o.HasMIG() {
			o.Report = output("-q", "-x")
		}
	} else if !slices.Contains(texts, 0) {
		texts = append(texts, 0) // the driver's version, which no other command gives
	}
	asked.Go(func() { o.Texts, o.TextColumns = s.askTexts(ctx, dcgmi, texts, host), texts })
	asked.Wait()
	e := list.failure(dcgmi, "discovery -l", "identity")
	whole := ListsAll(list.stdout)
	if e != nil && !whole {
		return Inventory{}, e
	}
	s.note(e, &list)
	o.Discovery = list.stdout
	if ListsInactive(list.stdout) {
		if all := s.ask(ctx, dcgmi, slices.Concat([]string{"discovery", "-l", "-a"}, host)); ListsAll(all.stdout) {
			o.Discovery = all.stdout
		}
	}
	if e := tree.failure(dcgmi, "discovery -c", "identity"); e == nil {
		o.Hierarchy = tree.stdout
	} else if s.hadInstances() {
		return Inventory{}, e
	}
	n := Parse(s.remember(&o))
	if v := s.view.Load(); v != nil {
		n.Remember(&v.inventory)
	}
	return n, nil
}

// note reports that discovery failed after its list of GPUs, unless e is nil: once in the
// log, and in Notes while it lasts. The caller has locked surveying.
func (s *Source) note(e *source.Error, list *answer) {
	var notes []source.Note
	if e != nil {
		notes = []source.Note{{
			Cause: "dcgmi discovery -l lists the GPUs, which are read, and then fails" + quoted(list.printed()),
			Remedy: "no reading of the GPUs is missing; see which module the host engine lacks: dcgmi modules -l; " +
				"NvSwitch is not loaded if --denylist-modules names it or its library is not installed",
		}}
	}
	if !s.setNotes(ofDiscovery, notes) {
		return
	}
	for _, n := range notes {
		s.opts.Logger.Info(n.Cause, "reads", s.Name(), "remedy", n.Remedy)
	}
}

// askTexts returns a sample of fields that are texts, nil if there is none.
func (s *Source) askTexts(ctx context.Context, dcgmi string, texts []int, host []string) []byte {
	if len(texts) == 0 {
		return nil
	}
	var ids []string
	for _, t := range texts {
		ids = append(ids, strconv.Itoa(Texts[t].ID))
	}
	delay := strconv.FormatInt(MinPeriod.Milliseconds(), 10)
	return s.ask(ctx, dcgmi, slices.Concat([]string{"dmon", "-c", "1", "-d", delay, "-e", strings.Join(ids, ",")}, host)).stdout
}

// remember fills in the last answers of nvidia-smi about boards, by UUID, and of dcgmi about
// texts: a single slow answer must not remove labels from the series. Answers about instances are
// not kept, because these come and go. The caller has locked surveying.
func (s *Source) remember(o *Outputs) *Outputs {
	if len(o.Query) == 0 {
		o.Query = s.query
	}
	if len(o.Links) == 0 {
		o.Links = s.links
	}
	if len(o.Texts) == 0 {
		o.Texts = s.texts
	}
	s.query, s.links, s.texts = o.Query, o.Links, o.Texts
	return o
}

// hadInstances reports whether the current view has instances.
func (s *Source) hadInstances() bool {
	v := s.view.Load()
	return v != nil && slices.ContainsFunc(v.inventory.Devices, func(d Device) bool { return d.IsInstance() })
}

// selectionError is about devices that the node does not have.
type selectionError struct{ error }

// choose returns the devices of n to watch, in the form of dmon's -i, and the entity id of
// one board of each model among them. If chosen GPUs are missing, the others are watched
// and the loss is logged. The caller has locked surveying.
func (s *Source) choose(n *Inventory) (entities string, models []int, err error) {
	selection, err := n.Choose(s.opts.Choose)
	if err != nil {
		return "", nil, unfit(err)
	}
	s.wanted = selection.Chosen
	entities = n.Entities(&selection)
	if entities == "" && !selection.All { // dmon would watch all
		return "", nil, unfit(errors.New("the host engine reads none of the GPUs chosen by " + selection.By))
	}
	missing := ""
	if selection.Missing != nil {
		missing = selection.Missing.Error()
	}
	if missing != "" && missing != s.missing {
		s.opts.Logger.Warn("some of the chosen GPUs do not exist; readings continue with the others", "reads", s.Name(), "cause", missing,
			"remedy", "see which GPUs the host engine knows: dcgmi discovery -l")
	}
	s.missing = missing
	return entities, n.OneOfEach(&selection), nil
}

// askExtras asks which multiplexed fields all boards, one of each model, support. If
// one board does not answer, the known fields stay, which are none at first. The
// caller has locked surveying.
func (s *Source) askExtras(ctx context.Context, dcgmi string, boards []int) {
	if !slices.ContainsFunc(s.streams[profiling].fields, IsMultiplexed) {
		return
	}
	var common []int
	rounds := false
	for i, board := range boards {
		got := s.ask(ctx, dcgmi, append([]string{"profile", "-l", "-i", strconv.Itoa(board)}, s.hostOption()...))
		if got.failure(dcgmi, "profile -l", "profiling") != nil {
			return
		}
		its, turns := Profiled(got.stdout)
		if i == 0 {
			common = its
		}
		common = slices.DeleteFunc(common, func(id int) bool { return !slices.Contains(its, id) })
		rounds = rounds || turns
	}
	s.extras = common
	if rounds && len(common) > 0 && !s.roundsLogged {
		s.roundsLogged = true
		s.opts.Logger.Info("the GPUs cannot count all profiling fields at once and count them in turn: each value covers a part of the period", "reads", s.Name(),
			"remedy", "to have the other fields cover the whole period, leave out the FP32, FP16, integer and tensor sub-pipes: --dcgm.fields=core")
	}
}

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
func (s *Source) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// learnVersion asks dcgmi for its version, unless it is known. That needs no host
// engine.
func (s *Source) learnVersion(ctx context.Context, dcgmi string) {
	if s.version.Load() != nil {
		return
	}
	got := s.ask(ctx, dcgmi, []string{"--version"})
	if number := parseVersion(got.stdout); number != "" {
		name := "dcgmi " + number
		s.version.Store(&name)
	}
}

// longestVersion is far longer than any version, such as 4.4.1.
const longestVersion = 32

// parseVersion returns the version in a line such as "dcgmi  version: 4.4.1", "" if there is none.
func parseVersion(output []byte) string {
	for line := range bytes.Lines(output) {
		_, number, is := strings.Cut(string(line), "version:")
		number = strings.TrimSpace(number)
		if is && number != "" && len(number) <= longestVersion && strings.Trim(number, "0123456789.") == "" {
			return number
		}
	}
	return ""
}

package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// refuse returns an error if settings contradict each other.
func (o *Options) refuse() error {
	switch {
	case o.Mode() == modeHealth && o.JSON && o.ForNPD != "":
		return errors.New("--json and --npd are two forms of the same; choose one")
	case o.Presents() && o.TUI:
		return errors.New("--tui draws on the terminal, --once and --export write to it; give one of them")
	case o.Presents() && o.JSON && o.Columns != nil:
		return errors.New("--json and --export are two forms of the same; choose one")
	case o.Mode() == ModeExport && o.Upstreams[0].Period == 0 && o.Upstreams[0].Backend.onDemand:
		return errors.New("--poll=0 reads only when scraped, and nobody scrapes --export; give an interval, such as 15s")
	}
	if d := &o.Kube.Discover; o.Mode() == ModeServe && d.Selector == "" && *d != Default().Kube.Discover && o.Origin("kube.discover-namespace") == FromFile {
		return errors.New("kube.discover in the config file finds nothing without its key selector; add selector: true there, or remove the section")
	}
	for _, f := range o.Given {
		if err := o.refuseFlag(f); err != nil {
			return err
		}
		if s := f.Setting; f.Texts == nil && s.Key != "" && o.Mode() == ModeServe && o.lacks(s) {
			return fmt.Errorf("%s in the config file does nothing without %s; give %s too, or remove the key", s.Key, s.needed(), s.thatOne())
		}
	}
	for i := range o.Upstreams {
		if host := o.Upstreams[i].DCGMHost; o.Processes && o.Mode() != modeHealth && !IsHere(host) {
			return fmt.Errorf("--collector.processes: the GPUs of --dcgm.host=%s are another machine's, whose processes cannot be seen from here; run kpulse-proxy there", host)
		}
	}
	var err error
	o.TUIURLs, err = nodeURLs(o.TUIURLs)
	return err
}

// refuseFlag returns an error if a given flag has no meaning with the others.
func (o *Options) refuseFlag(f *givenFlag) error {
	s := f.Setting
	if f.Texts == nil || o.IsZero(s) || o.isForOthers(f) {
		return nil
	}
	if s.Modes&o.Mode()&modeHealth == 0 && o.lacks(s) {
		return fmt.Errorf("%s is for %s; give %s too", f.Name(), s.needed(), s.thatOne())
	}
	if s.perSource != "" && s.Key == "" && o.Discovers() {
		return fmt.Errorf("%s is for one source, and --kube.discover finds any number of them; %s", f.Name(), s.perSource)
	}
	if s.perSource != "" && len(o.Upstreams) > 1 {
		return fmt.Errorf("%s is for one source, and the config file names %d; %s", f.Name(), len(o.Upstreams), s.perSource)
	}
	if s.remedy == "" {
		return nil
	}
	if s.Modes&o.Mode() == 0 && f.Typed {
		return fmt.Errorf("%s: %s", f.Name(), s.remedy)
	}
	if o.isForSources(s) {
		return nil
	}
	var names []string
	if o.Discovers() {
		names = append(names, Backends[0].Name)
	}
	for i := range o.Upstreams {
		names = append(names, o.Upstreams[i].Backend.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("%s is not for the %s backend: %s", f.Name(), strings.Join(slices.Compact(names), " or "), s.remedy)
}

// isForOthers reports whether a value may be ignored because check health does not use it: one of the
// environment may be meant for the proxy beside us.
func (o *Options) isForOthers(f *givenFlag) bool {
	return o.Mode() == modeHealth && !f.Typed && (f.Setting.Modes&modeHealth == 0 || !o.ReadsItself(FromCommandLine))
}

// isForSources reports whether a setting applies to a source that is read, or in this mode to all
// sources.
func (o *Options) isForSources(s *setting) bool {
	if s.everywhere&o.Mode() != 0 || o.Discovers() && s.isFor(&Backends[0]) {
		return true
	}
	return slices.ContainsFunc(o.Upstreams, func(one Upstream) bool { return s.isFor(one.Backend) })
}

// lacks reports whether a setting has a value, but none of the settings that it needs has one.
func (o *Options) lacks(s *setting) bool {
	return !o.IsZero(s) && !o.hasNeeded(s)
}

// hasNeeded reports whether a setting needs no others, or one of those has a value.
func (o *Options) hasNeeded(s *setting) bool {
	return s.needs == "" || slices.ContainsFunc(strings.Fields(s.needs), func(flag string) bool { return !o.IsZero(SettingOf(flag)) })
}

func (o *Options) IsZero(s *setting) bool { return reflect.ValueOf(s.at(o)).Elem().IsZero() }

// needed returns the names of the flags that a setting needs, and thatOne how a message refers to
// them afterwards.
func (s *setting) needed() string {
	flags := strings.Fields(s.needs)
	last := len(flags) - 1
	if last == 0 {
		return "--" + flags[0]
	}
	return "--" + strings.Join(flags[:last], ", --") + " or --" + flags[last]
}

func (s *setting) thatOne() string {
	if strings.Contains(s.needs, " ") {
		return "one of them"
	}
	return "that"
}

// Useless returns warnings of keys that have no effect without others.
func (f *File) Useless() (problems diag.Problems) {
	given := Options{Config: f.Config}
	for i := range table {
		if s := &table[i]; s.Key != "" && given.lacks(s) {
			p := f.Problem(s.Key, fmt.Sprintf("does nothing without %s; give %s too, or remove the key", s.needed(), s.thatOne()))
			p.Warning = true
			problems = append(problems, p)
		}
	}
	return problems
}

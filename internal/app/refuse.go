package app

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/config"
)

// refuse returns an error if settings contradict each other.
func (o *options) refuse() error {
	switch {
	case o.mode() == modeHealth && o.json && o.forNPD != npdOff:
		return errors.New("--json and --npd are two forms of the same; choose one")
	case o.presents() && o.tui:
		return errors.New("--tui draws on the terminal, --once and --export write to it; give one of them")
	case o.presents() && o.json && o.columns != nil:
		return errors.New("--json and --export are two forms of the same; choose one")
	case o.mode() == modeExport && o.sources[0].poll == 0 && o.sources[0].backend.onDemand:
		return errors.New("--poll=0 reads only when scraped, and nobody scrapes --export; give an interval, such as 15s")
	}
	if d := &o.Kube.Discover; o.mode() == modeServe && d.Selector == "" && *d != config.Default().Kube.Discover && o.origin("kube.discover-namespace") == fromFile {
		return errors.New("kube.discover in the config file finds nothing without its key selector; add selector: true there, or remove the section")
	}
	for _, f := range o.given {
		if err := o.refuseFlag(f); err != nil {
			return err
		}
		if s := f.setting; f.texts == nil && s.key != "" && o.mode() == modeServe && o.lacks(s) {
			return fmt.Errorf("%s in the config file does nothing without %s; give %s too, or remove the key", s.key, s.needed(), s.thatOne())
		}
	}
	for i := range o.sources {
		if host := o.sources[i].DCGMHost; o.processes && o.mode() != modeHealth && !isHere(host) {
			return fmt.Errorf("--collector.processes: the GPUs of --dcgm.host=%s are another machine's, whose processes cannot be seen from here; run kpulse-proxy there", host)
		}
	}
	var err error
	o.tuiURLs, err = nodeURLs(o.tuiURLs)
	return err
}

// refuseFlag returns an error if a given flag has no meaning with the others.
func (o *options) refuseFlag(f *givenFlag) error {
	s := f.setting
	if f.texts == nil || o.isZero(s) || o.isForOthers(f) {
		return nil
	}
	if s.modes&o.mode()&modeHealth == 0 && o.lacks(s) {
		return fmt.Errorf("%s is for %s; give %s too", f.name(), s.needed(), s.thatOne())
	}
	if s.perSource != "" && s.key == "" && o.discovers() {
		return fmt.Errorf("%s is for one source, and --kube.discover finds any number of them; %s", f.name(), s.perSource)
	}
	if s.perSource != "" && len(o.sources) > 1 {
		return fmt.Errorf("%s is for one source, and the config file names %d; %s", f.name(), len(o.sources), s.perSource)
	}
	if s.remedy == "" {
		return nil
	}
	if s.modes&o.mode() == 0 && f.typed {
		return fmt.Errorf("%s: %s", f.name(), s.remedy)
	}
	if o.isForSources(s) {
		return nil
	}
	var names []string
	if o.discovers() {
		names = append(names, backends[0].name)
	}
	for i := range o.sources {
		names = append(names, o.sources[i].backend.name)
	}
	slices.Sort(names)
	return fmt.Errorf("%s is not for the %s backend: %s", f.name(), strings.Join(slices.Compact(names), " or "), s.remedy)
}

// isForOthers reports whether a value may be ignored because check health does not use it: one of the
// environment may be meant for the proxy beside us.
func (o *options) isForOthers(f *givenFlag) bool {
	return o.mode() == modeHealth && !f.typed && (f.setting.modes&modeHealth == 0 || !o.readsItself(fromCommandLine))
}

// isForSources reports whether a setting applies to a source that is read, or in this mode to all
// sources.
func (o *options) isForSources(s *setting) bool {
	return s.everywhere&o.mode() != 0 || o.discovers() && s.isFor(&backends[0]) || slices.ContainsFunc(o.sources, func(one sourceSettings) bool { return s.isFor(one.backend) })
}

// lacks reports whether a setting has a value, but none of the settings that it needs has one.
func (o *options) lacks(s *setting) bool {
	return !o.isZero(s) && !o.hasNeeded(s)
}

// hasNeeded reports whether a setting needs no others, or one of those has a value.
func (o *options) hasNeeded(s *setting) bool {
	return s.needs == "" || slices.ContainsFunc(strings.Fields(s.needs), func(flag string) bool { return !o.isZero(settingOf(flag)) })
}

func (o *options) isZero(s *setting) bool { return reflect.ValueOf(s.at(o)).Elem().IsZero() }

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

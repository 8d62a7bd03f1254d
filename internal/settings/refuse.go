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
	discover, standard := o.Kube.Discover, Default().Kube.Discover
	for _, conflict := range []struct {
		holds bool
		text  string
	}{
		{o.Mode() == modeHealth && o.JSON && o.ForNPD != "", "--json and --npd are two forms of the same; choose one"},
		{o.Presents() && o.TUI, "--tui draws on the terminal, --once and --export write to it; give one of them"},
		{o.Presents() && o.JSON && o.Columns != nil, "--json and --export are two forms of the same; choose one"},
		{o.Mode() == ModeExport && o.Upstreams[0].Period == 0 && o.Upstreams[0].Backend.onDemand,
			"--poll=0 reads only when scraped, and nobody scrapes --export; give an interval, such as 15s"},
		{o.Mode() == ModeServe && discover.Selector == "" && discover != standard && o.Origin("kube.discover-namespace") == FromFile,
			"kube.discover in the config file finds nothing without its key selector; add selector: true there, or remove the section"},
	} {
		if conflict.holds {
			return errors.New(conflict.text)
		}
	}
	for _, f := range o.Given {
		if err := o.refuseFlag(f); err != nil {
			return err
		}
		s := f.Setting
		if needed := o.lacks(s); needed != "" && f.Texts == nil && s.Key != "" && o.Mode() == ModeServe {
			return fmt.Errorf("%s in the config file does nothing without %s; give that too, or remove the key", s.Key, needed)
		}
	}
	for i := range o.Upstreams {
		if host := o.Upstreams[i].DCGMHost; o.Processes && o.Mode() != modeHealth && !IsHere(host) {
			return fmt.Errorf("--collector.processes: the GPUs of --dcgm.host=%s are another machine's, whose processes cannot be seen from here; run "+
				"kpulse-proxy there", host)
		}
	}
	var err error
	o.TUIURLs, err = NodeURLs("--tui.url", o.TUIURLs...)
	return err
}

// refuseFlag returns an error if a given flag has no meaning with the others.
func (o *Options) refuseFlag(f *givenFlag) error {
	s := f.Setting
	if f.Texts == nil || o.isZero(s) || o.isForOthers(f) {
		return nil
	}
	if needed := o.lacks(s); needed != "" && s.Modes&o.Mode()&modeHealth == 0 {
		return fmt.Errorf("%s is for %s; give that too", f.Name(), needed)
	}
	if s.perSource && s.Key == "" && o.Discovers() {
		return fmt.Errorf("%s is for one source, and --kube.discover finds any number of them; choose one with --backend or --source", f.Name())
	}
	if s.perSource && len(o.Upstreams) > 1 {
		remedy := "choose one with --backend or --source"
		if key, is := strings.CutPrefix(s.Key, "sources[]."); is {
			remedy = "give each of them its " + key + " there"
		}
		return fmt.Errorf("%s is for one source, and the config file names %d; %s", f.Name(), len(o.Upstreams), remedy)
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

// lacks returns the flags one of which a setting needs, if it has a value and none of them has one.
func (o *Options) lacks(s *setting) string {
	flags := strings.Fields(s.needs)
	if s.needs == "" || o.isZero(s) || slices.ContainsFunc(flags, func(flag string) bool { return !o.isZero(rowOf(flag)) }) {
		return ""
	}
	return "--" + strings.Join(flags, " or --")
}

// rowOf returns the row of a flag.
func rowOf(flag string) *setting {
	return &table[slices.IndexFunc(table, func(s setting) bool { return s.Flag == flag })]
}

func (o *Options) isZero(s *setting) bool { return reflect.ValueOf(s.at(o)).Elem().IsZero() }

// Useless returns warnings of keys that have no effect without others.
func (f *File) Useless() (problems diag.Problems) {
	given := Options{Config: f.Config}
	for i := range table {
		s := &table[i]
		if needed := given.lacks(s); s.Key != "" && needed != "" {
			p := f.Problem(s.Key, "does nothing without "+needed+"; give that too, or remove the key")
			p.Warning = true
			problems = append(problems, p)
		}
	}
	return problems
}

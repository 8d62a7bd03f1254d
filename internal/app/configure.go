package app

import (
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/kpulse/kpulse-proxy/internal/config"
)

// origin is where a setting comes from. Of two that exclude each other the higher
// one counts.
type origin uint8

const (
	fromFile origin = iota // or the default
	fromEnvironment
	fromCommandLine
)

// watch tells, once app has parsed, where each flag's value comes from.
func watch(app *kingpin.Application) func(flag string) origin {
	typed := map[string]*bool{}
	for _, f := range app.Model().Flags {
		typed[f.Name] = new(bool)
		app.GetFlag(f.Name).IsSetByUser(typed[f.Name])
	}
	return func(flag string) origin {
		switch {
		case *typed[flag]:
			return fromCommandLine
		case app.GetFlag(flag).HasEnvarValue():
			return fromEnvironment
		default:
			return fromFile
		}
	}
}

// configure takes from the config file, if there is one, what neither command line
// nor environment say.
func (o *options) configure() error {
	if o.configFile == "" {
		return nil
	}
	file, err := config.Load(o.configFile)
	if err != nil {
		return err
	}
	feeds, problems := feedsOf(file)
	if problems.Refuse() {
		return problems
	}
	o.adopt(feeds)
	open := func(flag string) bool { return o.origin(flag) == fromFile }
	o.judge.Thresholds, o.judge.States, o.rows = file.Judge.Thresholds, file.Judge.States, file.Rows
	if open("preset") && open("weights") {
		o.judge.Preset, o.judge.Weights = file.Judge.Preset, file.Judge.Weights
	}
	if open("missing-inputs") {
		o.judge.Missing = file.Judge.Missing
	}
	if open("min-coverage") {
		o.judge.MinCoverage = file.Judge.MinCoverage
	}
	if open("series-limit") {
		o.seriesLimit = int(file.Limits.Series)
	}
	if open("source.max-body") {
		o.maxBody = int64(file.Limits.MaxBody)
	}
	if open("rules.file") {
		o.ruleFiles = file.Rules.Files
	}
	if open("rules.window") {
		o.ruleWindow = time.Duration(file.Rules.Window)
	}
	if open("rules.max-samples") {
		o.ruleSamples = int(file.Rules.MaxSamples)
	}
	if open("web.max-requests") {
		o.maxRequests = int(file.Limits.MaxRequests)
	}
	return nil
}

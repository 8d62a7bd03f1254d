package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const doctorUsage = `usage: kpulse-proxy doctor [<flags>]

Tries each backend on this machine once, changes nothing, and prints a table: what works, what does
not, and after an arrow what to type to make it work. The last line is the command that uses the
first that works.

  works    can be used
  refused  is there, but denies access or fails
  silent   did not answer in time
  missing  is not there; most machines need only one of the backends

It looks in the usual places. These flags, and their variables (such as KPULSE_SOURCE),
name others; in a container that runs kpulse-proxy, that command line counts too.

  --source=URL                    an exporter; without it, the one at port 9400
  --dcgm.host=HOST                a host engine
  --config.file=FILE              sources of a config file
  --timeout=20s                   how long a try may take
  --json                          print {"checks": [{"check", "state", "found", "remedy", "flags"}], "command"}

Exit status: 0 if a backend works, 1 if none does, 2 for wrong usage.

What works on this node?       kpulse-proxy doctor
Why is that exporter not read? kpulse-proxy doctor --source=http://node7:9400/metrics
And in this pod?               kubectl exec -n NAMESPACE POD -- /kpulse-proxy doctor
In a script:                   kpulse-proxy doctor --json | jq -r .command
`

// The states of a check, in the order in which checks are listed.
const (
	stateWorks   = "works"
	stateRefused = "refused" // it is there, but denies access or fails
	stateSilent  = "silent"  // it did not answer in time
	stateMissing = "missing" // it is not there
)

var states = []string{stateWorks, stateRefused, stateSilent, stateMissing}

const (
	// standardConfig is the config file of the packages.
	standardConfig = "/etc/kpulse-proxy/config.yml"
	// doctorPatience is the default of --timeout, for each try: dcgmi looks for a host engine for
	// 5 s, and runs several times.
	doctorPatience = 20 * time.Second
	// hangs is how much later than its time a try is abandoned: dcgmi is killed after a few seconds.
	hangs = 12 * time.Second
	// triesAtOnce bounds the sources that are read at a time, and so the memory.
	triesAtOnce = 16
	// slow is the remedy of a try that takes too long.
	slow = "see what hangs: curl, nvidia-smi, and dmesg for the driver; or give it longer: --timeout=1m"
)

// diagnosis is the result of a check.
type diagnosis struct {
	Check string `json:"check"`
	State string `json:"state"`
	Found string `json:"found"` // in one line or several
	// Remedy is what to do or to type, in one line or several; "" for nothing.
	Remedy string `json:"remedy,omitempty"`
	// Flags are the flags that make use of what works.
	Flags []string `json:"flags,omitempty"`
}

// attempt is a source to try.
type attempt struct {
	check    string
	upstream settings.Upstream
	flags    []string // that read it; nil means --source with its name
}

// ReadSource reads a source until it gives all inputs of our scores, or for a few seconds. It returns
// its name, the number of its devices and its state.
type ReadSource func(context.Context, *settings.Options, *settings.Upstream) (name string, devices int, state *canonical.Source, err error)

// doctor holds what to try, and what is known without.
type doctor struct {
	read ReadSource
	// opts are the settings of flags, environment and config file, and in a container those of
	// its command line. Only the file is checked.
	opts     *settings.Options
	attempts []attempt
	rows     []diagnosis
}

// Doctor is the mode `doctor`. It returns the exit code. A try that hangs in a driver goes on after it.
func Doctor(ctx context.Context, args []string, stdout, stderr io.Writer, read ReadSource) int {
	if AsksForHelp(args) {
		fmt.Fprint(stdout, doctorUsage)
		return settings.ExitDone
	}
	d := &doctor{read: read}
	switch err := d.prepare(args, stdout); {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case err != nil:
		fmt.Fprintf(stderr, "kpulse-proxy: doctor: %v\n(kpulse-proxy doctor --help says what it takes)\n", err)
		return settings.ExitUsage
	}
	rows := d.examine(ctx)
	works, command := rows[0].State == stateWorks, "kpulse-proxy --backend=replay"
	if works {
		words := []string{"kpulse-proxy"}
		for _, flag := range rows[0].Flags {
			words = append(words, settings.ShellWord(flag))
		}
		command = strings.Join(words, " ")
	}
	var err error
	if d.opts.JSON {
		err = writeJSON(stdout, struct {
			Checks  []diagnosis `json:"checks"`
			Command string      `json:"command"`
		}{rows, command})
	} else {
		err = writeDiagnoses(stdout, rows, command)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
	}
	if err != nil || !works {
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// prepare reads the flags, and finds what to try, the most useful first.
func (d *doctor) prepare(args []string, stdout io.Writer) error {
	g, _, err := flagsFor("doctor", args, stdout, "source", "dcgm.host", "config.file", "node-name", "timeout", "json")
	if err != nil {
		return err
	}
	if of, err := settings.ReadFlags(flagsOfContainer(), io.Discard); err == nil { // else it runs something else
		g = g.Over(of)
	}
	file := g.Flag("config.file").String()
	if _, err := os.Stat(standardConfig); err == nil && file == "" {
		file = standardConfig
	}
	opts, upstreams, refused, err := g.Unchecked(file)
	if err != nil {
		return err
	}
	if opts.Kube.Discover.Selector != "" {
		return errors.New("it does not read the exporters that --kube.discover finds: the landing page of the proxy shows each, and why one is not read")
	}
	if d.opts = opts; opts.Origin("timeout") == settings.FromFile {
		opts.CheckTimeout = settings.Duration(doctorPatience)
	}
	if refused != nil {
		d.rows = append(d.rows, diagnosis{Check: "config file", State: stateRefused, Found: refused.Error(),
			Remedy: "correct it, and see: kpulse-proxy check config " + file})
	}
	for _, s := range upstreams {
		d.attempts = append(d.attempts, attempt{"config file", s, []string{"--config.file=" + file}})
	}
	d.add("exporter", settings.Source{Source: opts.FlagSource.Source}, nil)
	flags, host := []string{"--backend=dcgm"}, opts.FlagSource.DCGMHost
	if host != "" {
		flags = append(flags, "--dcgm.host="+host)
	}
	d.add("host engine", settings.Source{Backend: "dcgm", DCGMHost: host}, flags)
	d.add("NVML", settings.Source{Backend: "nvml"}, []string{"--backend=nvml"})
	return nil
}

// add adds a source that the config file does not name.
func (d *doctor) add(check string, from settings.Source, flags []string) {
	from.NodeName = d.opts.FlagSource.NodeName
	if s, err := d.opts.Resolve(from); err != nil {
		d.rows = append(d.rows, failed(check, err))
	} else {
		d.attempts = append(d.attempts, attempt{check, s, flags})
	}
}

// examine tries all sources at the same time, and returns what was found, from works to missing.
func (d *doctor) examine(ctx context.Context) []diagnosis {
	rows := make([]diagnosis, len(d.attempts))
	var running errgroup.Group
	running.SetLimit(triesAtOnce)
	for i := range d.attempts {
		running.Go(func() error {
			rows[i] = d.try(ctx, &d.attempts[i])
			return nil
		})
	}
	_ = running.Wait() // no function returns an error
	rows = append(d.rows, rows...)
	slices.SortStableFunc(rows, func(a, b diagnosis) int {
		return slices.Index(states, a.State) - slices.Index(states, b.State)
	})
	return rows
}

// try reads one source, and abandons it if it does not answer in time.
func (d *doctor) try(ctx context.Context, a *attempt) diagnosis {
	patience := time.Duration(d.opts.CheckTimeout)
	bounded, end := context.WithTimeoutCause(ctx, patience, canonical.TimedOut(patience))
	defer end()
	found := make(chan diagnosis, 1)
	go func() {
		name, devices, state, err := d.read(bounded, d.opts, &a.upstream)
		if err == nil {
			found <- a.found(name, devices, state)
			return
		}
		row := failed(a.check, err)
		if bounded.Err() != nil {
			row.State, row.Remedy = stateSilent, slow
		}
		found <- row
	}()
	select {
	case row := <-found:
		return row
	case <-time.After(patience + hangs):
		return diagnosis{Check: a.check, State: stateSilent, Found: "no answer within " + patience.String(), Remedy: slow}
	}
}

// found returns the diagnosis of a source that was read.
func (a *attempt) found(name string, devices int, state *canonical.Source) diagnosis {
	notes := slices.Clone(state.Notes)
	for _, stream := range state.Streams {
		if f := stream.Failure; f != nil {
			notes = append(notes, canonical.Note{Cause: stream.Name + ": " + f.Cause, Remedy: f.Remedy})
		}
	}
	row := diagnosis{Check: a.check, State: stateWorks, Found: name + ": " + diag.Count(devices, "device"), Flags: a.flags}
	if a.flags == nil {
		row.Flags = []string{"--source=" + name}
	}
	var remedies []string
	if devices == 0 {
		row.State, row.Found, row.Flags = stateRefused, name+" is read and has no GPU", nil
		remedies = append(remedies, "check whether this is an exporter of GPUs, and whether it sees them")
	}
	for _, n := range notes {
		row.Found, remedies = row.Found+"; "+n.Cause, append(remedies, n.Remedy)
	}
	if row.Found = diag.Text(row.Found); devices > 0 && len(state.Missing) > 0 {
		row.Found += "\nwithout " + strings.Join(canonical.NamesOf(state.Missing), ", ")
		if len(state.ConfigFields) > 0 {
			remedies = append(remedies, "scores lack these: set in the exporter's config file "+strings.Join(state.ConfigFields, "; "))
		} else if state.ConfigFields == nil && a.upstream.Backend.OverHTTP && len(state.Missing) > len(state.Unusable) {
			remedies = append(remedies, "scores lack these: start the exporter with -f deploy/dcgm-counters.csv, "+
				"or add to its counters file what kpulse-proxy check counters FILE names")
		}
	}
	row.Remedy = strings.Join(remedies, "\n")
	return row
}

// failed returns the diagnosis of an error.
func failed(check string, err error) diagnosis {
	f, is := errors.AsType[*canonical.Failure](err)
	if !is {
		f = source.FailureOf(err)
	}
	row := diagnosis{Check: check, State: stateRefused, Found: diag.Text(f.Cause), Remedy: diag.Text(f.Remedy)}
	absent := []string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported)}
	if f.Timeout {
		row.State = stateSilent
	} else if slices.Contains(absent, f.Kind) {
		row.State = stateMissing
	}
	return row
}

// writeDiagnoses writes rows as a table, and the command.
func writeDiagnoses(out io.Writer, rows []diagnosis, command string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tSTATE\tWHAT WAS FOUND, AND WHAT TO TYPE")
	before := ""
	for _, r := range rows {
		text := r.Found
		if r.Remedy != "" && r.Remedy != before {
			text += "\n→ " + strings.ReplaceAll(r.Remedy, "\n", "\n→ ")
		}
		before = r.Remedy
		lead := r.Check + "\t" + r.State + "\t"
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(table, lead+diag.Text(line))
			lead = "\t\t"
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	answer := "Run this:"
	if rows[0].State != stateWorks {
		answer = "No backend works here: make one of them work as the table says. Until then, the demo runs anywhere:"
	}
	_, err := fmt.Fprintf(out, "\n%s\n  %s\n", answer, command)
	return err
}

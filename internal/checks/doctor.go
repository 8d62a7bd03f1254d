package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

const doctorUsage = `usage: kpulse-proxy doctor [<flags>]

Tries each backend and each permission on this machine, changes nothing, and prints a table: what
works, what does not, and after an arrow what to type to make it work. The last line is the command
that uses all that works.

  works    can be used
  refused  is there, but denies access or fails
  silent   did not answer in time
  missing  is not there; most machines need only one of the backends

It looks in the usual places. These flags, and their variables (such as KPULSE_SOURCE),
name others; in a container that runs kpulse-proxy, that command line counts too.

  --source=URL                    an exporter
  --dcgm.host=HOST                a host engine
  --config.file=FILE              sources of a config file
  --kube.discover=SELECTOR, --kube.discover-namespace=NAMESPACE, --kube.config=FILE, --node-name=NAME
                                  pods of exporters in a cluster, and the rights to find them
  --kube.pod-resources=SOCKET     the kubelet
  --kernel-log=FILE, --hpc-job-mapping-dir=DIR, --hpc-job-info-dir=DIR, --web.listen-address=ADDRESS
  --timeout=20s                   how long a check may take
  --json                          print {"checks": [{"check", "state", "found", "remedy", "flags"}], "command"}

Exit status: 0 if a backend works, 1 if none does, 2 for wrong usage.

What works on this node?       kpulse-proxy doctor
Why is that exporter not read? kpulse-proxy doctor --source=http://node7:9400/metrics
And in this pod?               kubectl exec -n NAMESPACE POD -- /kpulse-proxy doctor
In a script:                   kpulse-proxy doctor --json | jq -r .command
`

// state is the result of a check.
type state string

// The states; states has the order in which checks are listed.
const (
	stateWorks   state = "works"
	stateRefused state = "refused" // it is there, but denies access or fails
	stateSilent  state = "silent"  // it did not answer in time
	stateMissing state = "missing" // it is not there
)

var states = []state{stateWorks, stateRefused, stateSilent, stateMissing}

// diagnosis is the result of a check.
type diagnosis struct {
	Check string `json:"check"`
	State state  `json:"state"`
	// Found has a line for each source, or one.
	Found string `json:"found"`
	// Remedy is what to do or to type, in one line or several; "" for nothing.
	Remedy string `json:"remedy,omitempty"`
	// Flags are the flags that make use of what works, or avoid what does not.
	Flags []string `json:"flags,omitempty"`

	checkup *checkup
	lacks   string // the inputs of our scores that a source does not give
}

// checkup is a check of this node.
type checkup struct {
	name    string
	backend bool // it reads GPUs; the program needs one backend that works
	local   bool // its flags are for a backend that reads this node itself
	demo    bool // its flags are for the demo too
	run     func(context.Context, *doctor) diagnosis
}

// Reader is what doctor needs of the program.
type Reader struct {
	// Begin prepares the process, and returns a context that signals end.
	Begin func(*settings.Options) (context.Context, context.CancelFunc)
	// Read reads a source until it gives all inputs of our scores, or for a few seconds. It returns
	// its name, the number of its devices and its state.
	Read func(context.Context, *settings.Options, *settings.Upstream) (name string, devices int, state *canonical.Source, err error)
}

// doctor holds the inputs of the checks.
type doctor struct {
	Reader
	// opts are the settings of flags, environment and config file, and in a container those of
	// its command line. Only the file is checked.
	opts *settings.Options
	// configFile is the given one, else standardConfig if it exists, else "".
	configFile string
	upstreams  []settings.Upstream // of the config file
	refused    error               // why configFile is refused
}

const (
	// standardConfig is the config file of the packages.
	standardConfig = "/etc/kpulse-proxy/config.yml"
	// doctorPatience is the default of --timeout, for each check: dcgmi looks for a host engine for
	// 5 s, and runs several times.
	doctorPatience = 20 * time.Second
	// hangs is how much later than its time a check is abandoned: dcgmi is killed after a few seconds.
	hangs = 12 * time.Second
)

// Doctor is the mode `doctor`. It returns the exit code.
func Doctor(args []string, stdout, stderr io.Writer, with Reader) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprint(stdout, doctorUsage)
		return settings.ExitDone
	}
	d, err := newDoctor(args, stdout)
	switch {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case err != nil:
		fmt.Fprintf(stderr, "kpulse-proxy: doctor: %v\n(kpulse-proxy doctor --help says what it takes)\n", err)
		return settings.ExitUsage
	}
	d.Reader = with
	ctx, stop := with.Begin(d.opts)
	defer stop()
	rows := d.examine(ctx, checkups)
	works := slices.ContainsFunc(rows, diagnosis.reads)
	if d.opts.JSON {
		err = writeJSON(stdout, struct {
			Checks  []diagnosis `json:"checks"`
			Command string      `json:"command"`
		}{rows, commandOf(rows)})
	} else {
		err = writeDiagnoses(stdout, rows, works)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
	}
	if err != nil || !works {
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// newDoctor reads the inputs of the checks.
func newDoctor(args []string, stdout io.Writer) (*doctor, error) {
	g, err := settings.ReadFlags(args, stdout)
	if err != nil {
		return nil, err
	}
	for _, f := range g {
		if s := f.Setting; f.Typed && (s.Modes&settings.ModeServe == 0 || s.Flag == "config.show") && s.Flag != "json" && s.Flag != "timeout" {
			return nil, fmt.Errorf("%s is not for doctor; leave one of the two out", f.Name())
		}
	}
	if of, err := settings.ReadFlags(flagsOfContainer(), io.Discard); err == nil { // else it runs something else
		g = g.Over(of)
	}
	d := &doctor{configFile: g.Flag("config.file").String()}
	if _, err := os.Stat(standardConfig); err == nil && d.configFile == "" {
		d.configFile = standardConfig
	}
	d.opts, d.upstreams, d.refused, err = g.Unchecked(d.configFile)
	if err == nil && d.opts.Origin("timeout") == settings.FromFile {
		d.opts.CheckTimeout = settings.Duration(doctorPatience)
	}
	return d, err
}

// examine runs all checks at the same time, and returns their results, from works to missing. It
// abandons a check that does not answer in time.
func (d *doctor) examine(ctx context.Context, checkups []checkup) []diagnosis {
	patience := time.Duration(d.opts.CheckTimeout)
	rows := make([]diagnosis, len(checkups))
	var running sync.WaitGroup
	for i := range checkups {
		c := &checkups[i]
		running.Go(func() {
			bounded, end := context.WithTimeoutCause(ctx, patience, canonical.TimedOut(patience))
			defer end()
			found := make(chan diagnosis, 1)
			go func() { found <- c.run(bounded, d) }()
			select {
			case rows[i] = <-found:
			case <-time.After(patience + hangs):
				rows[i] = diagnosis{State: stateSilent, Found: "no answer within " + patience.String(),
					Remedy: "check whether the kernel or a driver hangs (dmesg), " + longer}
			}
			rows[i].Check, rows[i].checkup = c.name, c
		})
	}
	running.Wait()
	slices.SortStableFunc(rows, byState)
	return rows
}

func byState(a, b diagnosis) int {
	return slices.Index(states, a.State) - slices.Index(states, b.State)
}

// reads reports whether the row is of a backend that works.
func (r diagnosis) reads() bool { return r.checkup.backend && r.State == stateWorks }

// commandOf returns the command that makes use of what works: the first backend and all that goes
// with it, or else the demo.
func commandOf(rows []diagnosis) string {
	words := []string{"kpulse-proxy"}
	at := slices.IndexFunc(rows, diagnosis.reads)
	if at < 0 {
		words = append(words, "--backend=replay")
	}
	for i, r := range rows {
		goes := at >= 0 && !r.checkup.backend && (rows[at].checkup.local || !r.checkup.local)
		if i == at || goes || r.checkup.demo {
			for _, flag := range r.Flags {
				if word := settings.ShellWord(flag); !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
		}
	}
	return strings.Join(words, " ")
}

// writeDiagnoses writes rows as a table, and the command.
func writeDiagnoses(out io.Writer, rows []diagnosis, works bool) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tSTATE\tWHAT WAS FOUND, AND WHAT TO TYPE")
	for _, r := range rows {
		lead := r.Check + "\t" + string(r.State) + "\t"
		for line := range strings.SplitSeq(r.Found+"\n→ "+strings.ReplaceAll(r.Remedy, "\n", "\n→ "), "\n") {
			if line = diag.Text(line); line != "→ " {
				fmt.Fprintln(table, lead+line)
				lead = "\t\t"
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	answer := "\nRun this:\n  "
	if !works {
		answer = "\nNo backend works here: make one of them work as the table says. Until then, the demo runs anywhere:\n  "
	}
	_, err := io.WriteString(out, text.String()+answer+commandOf(rows)+"\n")
	return err
}

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/plain"
)

const doctorUsage = `usage: kpulse-proxy doctor [<flags>] [--timeout=20s] [--json]

Tries each backend and permission on this node, changes nothing, and says what works, what to
type for the rest, and which command to run. It takes the flags and variables of kpulse-proxy
that name something: --source, --dcgm.host, --config.file, --kernel-log, --kube.pod-resources,
--kube.config, --hpc-job-mapping-dir, --hpc-job-info-dir and --web.listen-address. Exits with 0
if some backend works, with 1 if none does, and with 2 if called wrongly.
`

// state is what came of a check.
type state uint8

// The states, in the order in which checks are listed.
const (
	stateWorks   state = iota
	stateRefused       // it is there, and does not let us, or not work
	stateSilent        // it did not answer in time
	stateMissing       // it is not there
)

var stateWords = [...]string{stateWorks: "works", stateRefused: "refused", stateSilent: "silent", stateMissing: "missing"}

// MarshalText implements encoding.TextMarshaler.
func (s state) MarshalText() ([]byte, error) { return []byte(stateWords[s]), nil }

// finding is what a check found. Its texts are one line each.
type finding struct {
	State state  `json:"state"`
	Found string `json:"found"`
	// Remedy is what to do or to type, "" for nothing.
	Remedy string `json:"remedy,omitempty"`
	// Flags are what to start the program with to make use of what works.
	Flags []string `json:"flags,omitempty"`
}

// checkup is a check of this node.
type checkup struct {
	name string
	// backend: it reads GPUs, which is what the program cannot do without.
	backend bool
	// local: its flags are for a backend that reads this node itself.
	local bool
	run   func(context.Context, *doctor) finding
}

// diagnosis is a row of the table.
type diagnosis struct {
	Check string `json:"check"`
	finding
	checkup *checkup
}

// doctor is what the checks go by.
type doctor struct {
	opts *options
	// environment is that of this process, as of os.Environ.
	environment []string
}

// doctorPatience is how long a check may take unless --timeout says: dcgmi looks for a host
// engine for 5 s, and is asked several things.
const doctorPatience = 20 * time.Second

// doctorCommand is the mode `doctor`: it returns the exit code.
func doctorCommand(args, environment []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprint(stdout, doctorUsage)
		return exitDone
	}
	if len(args) > 0 && args[0] == probeWord {
		return probe(stdout)
	}
	g, err := readFlags(args, stdout)
	opts := newOptions()
	for _, f := range g {
		err = errors.Join(err, f.apply(opts))
	}
	switch {
	case errors.Is(err, errAnswered):
		return exitDone
	case err != nil:
		fmt.Fprintf(stderr, "kpulse-proxy: doctor: %v\n%s", err, doctorUsage)
		return exitUsage
	}
	opts.given = g
	if opts.origin("timeout") == fromFile {
		opts.checkTimeout = config.Duration(doctorPatience)
	}
	d := &doctor{opts: opts, environment: environment}
	ctx, stop := opts.begin()
	defer stop()
	rows := d.examine(ctx, checkups)
	command := commandOf(rows)
	write := writeDiagnoses
	if opts.json {
		write = writeDiagnosesJSON
	}
	if err := write(stdout, rows, command); err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return exitFailed
	}
	if !slices.ContainsFunc(rows, func(r diagnosis) bool { return r.checkup.backend && r.State == stateWorks }) {
		return exitFailed
	}
	return exitDone
}

// examine runs all checks at the same time, and returns what they found: what works first,
// what is missing last. One that does not answer in time is left to itself.
func (d *doctor) examine(ctx context.Context, checkups []checkup) []diagnosis {
	patience := time.Duration(d.opts.checkTimeout)
	rows := make([]diagnosis, len(checkups))
	var running sync.WaitGroup
	for i := range checkups {
		c := &checkups[i]
		running.Go(func() {
			bounded, end := context.WithTimeout(ctx, patience)
			defer end()
			found := make(chan finding, 1)
			go func() { found <- c.run(bounded, d) }()
			rows[i] = diagnosis{Check: c.name, checkup: c}
			select {
			case rows[i].finding = <-found:
			case <-time.After(patience + 3*probeGrace):
				rows[i].finding = finding{State: stateSilent, Found: "no answer within " + patience.String(), Remedy: "see whether the kernel or a driver hangs (dmesg), or give it longer: --timeout=1m"}
			}
		})
	}
	running.Wait()
	slices.SortStableFunc(rows, func(a, b diagnosis) int { return int(a.State) - int(b.State) })
	return rows
}

// commandOf returns the command that makes use of what works: the first backend, with all that
// goes with it.
func commandOf(rows []diagnosis) string {
	command := "kpulse-proxy"
	at := slices.IndexFunc(rows, func(r diagnosis) bool { return r.checkup.backend && r.State == stateWorks })
	if at < 0 {
		return command + " --backend=replay"
	}
	local := rows[at].checkup.local
	for i, r := range rows {
		if r.State == stateWorks && (i == at || !r.checkup.backend && (local || !r.checkup.local)) {
			for _, flag := range r.Flags {
				command += " " + flag
			}
		}
	}
	return command
}

// writeDiagnosesJSON writes them for programs.
func writeDiagnosesJSON(out io.Writer, rows []diagnosis, command string) error {
	encoder := json.NewEncoder(plain.JSONWriter(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Checks  []diagnosis `json:"checks"`
		Command string      `json:"command"`
	}{rows, command})
}

// writeDiagnoses writes a table, and what to run.
func writeDiagnoses(out io.Writer, rows []diagnosis, command string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tSTATE\tWHAT WAS FOUND, AND WHAT TO TYPE")
	for _, r := range rows {
		lead := r.Check + "\t" + stateWords[r.State] + "\t"
		for _, line := range append(wrap(r.Found, ""), wrap(r.Remedy, "→ ")...) {
			fmt.Fprintln(table, lead+line)
			lead = "\t\t"
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	answer := "\nRun this:\n  "
	if strings.HasSuffix(command, "replay") {
		answer = "\nNo backend works here. Do what is said above of one of them; until then the demo runs anywhere:\n  "
	}
	_, err := io.WriteString(out, text.String()+answer+command+"\n")
	return err
}

// doctorWidth is how many letters of a text stand on a line.
const doctorWidth = 88

// wrap breaks a text of one line between words. The first line begins with a mark.
func wrap(text, mark string) (lines []string) {
	line := ""
	for _, word := range strings.Fields(plain.Text(text)) {
		if line != "" && len(line)+1+len(word) > doctorWidth {
			lines, line = append(lines, mark+line), ""
			mark = strings.Repeat(" ", len([]rune(mark)))
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line == "" {
		return lines
	}
	return append(lines, mark+line)
}

package dcgm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Wish says which devices are to be shown.
type Wish struct {
	// GPUs is the value of --gpus, "" where it was not given: indices and ranges
	// of them as in the label gpu, UUIDs of boards and of MIG devices or enough
	// characters of their beginning, and all.
	GPUs string
	// ShowAll is --show-all.
	ShowAll bool
	// LookupEnv is asked where neither flag was given; nil is an empty
	// environment.
	LookupEnv func(name string) (value string, ok bool)
}

// Selection is what a Wish chose of a Node.
type Selection struct {
	// From is what chose: --gpus, --show-all or a variable, "" where nothing did.
	From string
	// All: nothing was left out.
	All bool
	// Picks in the order of the Node's boards and instances, none twice.
	Picks []Pick
}

// Holds tells whether s chose what stands at p, by itself or with its board.
func (s *Selection) Holds(p Pick) bool {
	return slices.ContainsFunc(s.Picks, func(chosen Pick) bool {
		return chosen.Board == p.Board && (chosen.Instance == Whole || chosen.Instance == p.Instance)
	})
}

// Pick is a whole board with all of its instances, or one instance.
type Pick struct {
	Board    int // index in Node.Boards
	Instance int // index in Board.Instances, or Whole
}

// Whole is the Pick.Instance of a whole board.
const Whole = -1

// variables are asked in this order, and the first that says something decides.
var variables = []struct {
	name string
	read func(n *Node, value string, lookup func(string) (string, bool)) verdict
}{
	{"CUDA_VISIBLE_DEVICES", readCUDA},
	{"NVIDIA_VISIBLE_DEVICES", readContainer},
	{"SLURM_STEP_GPUS", readSlurm},
	{"SLURM_JOB_GPUS", readSlurm},
}

// verdict is what a variable says: nothing where it is the zero verdict.
type verdict struct {
	picks []Pick
	all   bool
	none  bool // it hides every device
}

// Select returns what w chooses of n, all of which must be there. Errors name the
// flag or variable, what is there, and what to write.
func Select(n *Node, w Wish) (Selection, error) {
	s, missing, err := SelectPresent(n, w)
	if err == nil {
		err = missing
	}
	if err != nil {
		return Selection{}, err
	}
	return s, nil
}

// SelectPresent is Select for a node that may have lost what was chosen before:
// --gpus chooses what is left of its devices, and missing, in the words of an error
// of Select, tells what is not. It is an error where nothing is left.
func SelectPresent(n *Node, w Wish) (s Selection, missing, err error) {
	if w.GPUs == "" {
		s, err = selectByDefault(n, w)
		return s, nil, err
	}
	picks, all, missing, err := readFlag(n, w.GPUs)
	if err == nil && !all && len(picks) == 0 {
		err = missing
	}
	if err != nil {
		return Selection{}, nil, fmt.Errorf("--gpus=%s: %w", clip(w.GPUs), err)
	}
	if missing != nil {
		missing = fmt.Errorf("--gpus=%s: %w", clip(w.GPUs), missing)
	}
	return n.selection("--gpus", picks, all), missing, nil
}

// selectByDefault is Select without --gpus.
func selectByDefault(n *Node, w Wish) (Selection, error) {
	if w.ShowAll || w.LookupEnv == nil {
		from := ""
		if w.ShowAll {
			from = "--show-all"
		}
		return n.selection(from, nil, true), nil
	}
	for _, v := range variables {
		value, set := w.LookupEnv(v.name)
		if !set {
			continue
		}
		said := v.read(n, strings.TrimSpace(value), w.LookupEnv)
		switch {
		case said.none:
			return Selection{}, fmt.Errorf("%s=%s hides every GPU; show them with --show-all or --gpus=0", v.name, clip(value))
		case said.all || len(said.picks) > 0:
			return n.selection(v.name, said.picks, said.all), nil
		}
	}
	return n.selection("", nil, true), nil
}

// selection tidies picks: in order, none twice, no instance beside its board.
func (n *Node) selection(from string, picks []Pick, all bool) Selection {
	if all {
		picks = nil
		for b := range n.Boards {
			picks = append(picks, Pick{b, Whole})
		}
	}
	// Whole is the least instance, so that a board stands in front of its parts.
	slices.SortFunc(picks, func(a, b Pick) int {
		return cmp.Or(cmp.Compare(a.Board, b.Board), cmp.Compare(a.Instance, b.Instance))
	})
	var tidy []Pick
	for _, p := range picks {
		if len(tidy) > 0 {
			last := tidy[len(tidy)-1]
			if last == p || last == (Pick{p.Board, Whole}) {
				continue
			}
		}
		tidy = append(tidy, p)
	}
	s := Selection{From: from, All: true, Picks: tidy}
	for b := range n.Boards {
		s.All = s.All && slices.Contains(tidy, Pick{b, Whole})
	}
	return s
}

// Entities returns the picks in the syntax of dmon's -i, `0,1,i:7`. A board that is
// cut is watched by its instances alone: so does dcgm-exporter by default, and a
// dashboard that sums the memory of all rows would count the board's twice. It is
// "" where dmon chooses the same by itself: all boards, none of them cut.
func (s *Selection) Entities(n *Node) string {
	var list []string
	cut := false
	for _, p := range s.Picks {
		b := &n.Boards[p.Board]
		if b.Inactive {
			continue
		}
		if p.Instance == Whole && len(b.Instances) == 0 {
			list = append(list, strconv.Itoa(b.Entity))
		}
		for i := range b.Instances {
			if p.Instance == Whole || p.Instance == i {
				list = append(list, "i:"+strconv.Itoa(b.Instances[i].Entity))
				cut = true
			}
		}
	}
	if s.All && !cut {
		return ""
	}
	return strings.Join(list, ",")
}

// clip bounds a value that is quoted in a message.
func clip(value string) string {
	const longest = 64
	if len(value) > longest {
		return strings.ToValidUTF8(value[:longest], "") + "…"
	}
	return value
}

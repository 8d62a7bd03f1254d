package fake

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// place is where an entity stands in the hierarchy of MIG: NVML's ids of the
// board, the GPU instance and the compute instance, -1 where it is none.
type place struct {
	entity                 dcgmitest.Entity
	uuid                   string
	board, instance, slice int
}

// hierarchy returns the boards, each followed by its instances, and these each
// by their compute instances, in the order of NVML's ids.
func hierarchy(s dcgmitest.Scenario) []place {
	var places []place
	for _, gpu := range s.GPUs {
		board := dcgmitest.Entity{Group: dcgmitest.Board, ID: gpu.Index}
		places = append(places, place{board, gpu.UUID, gpu.Index, -1, -1})
		for _, i := range gpu.Instances {
			instance := dcgmitest.Entity{Group: dcgmitest.GPUInstance, ID: i.Entity}
			places = append(places, place{instance, i.UUID, gpu.Index, i.ID, -1})
			for _, c := range i.Compute {
				compute := dcgmitest.Entity{Group: dcgmitest.ComputeInstance, ID: c.Entity}
				places = append(places, place{compute, "", gpu.Index, i.ID, c.ID})
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.board, b.board), cmp.Compare(a.instance, b.instance), cmp.Compare(a.slice, b.slice))
	})
	return places
}

// group returns the entities that dmon watches, in the order of its rows. On an
// error the text is what it says of it.
func (f *fake) group(set map[string]string) ([]dcgmitest.Entity, status, string) {
	requested, given := set["entity-id"]
	if old, is := set["gpu-id"]; is {
		requested, given = old, true
	}
	var entities []dcgmitest.Entity
	switch group := set["group-id"]; {
	case given:
		for token := range strings.SplitSeq(requested, ",") {
			more, text := f.entities(token)
			if text != "" {
				return nil, badParam, text
			}
			entities = append(entities, more...)
		}
	case group == "all_nvswitches":
		for id := range f.scenario.Switches {
			entities = append(entities, dcgmitest.Entity{Group: dcgmitest.Switch, ID: id})
		}
	case group != "" && group != "all_gpus":
		os.Exit(f.misuse(fmt.Errorf("group %s is not emulated; use all_gpus, all_nvswitches or -i", group)))
	default:
		for _, gpu := range f.scenario.GPUs {
			entities = append(entities, dcgmitest.Entity{Group: dcgmitest.Board, ID: gpu.Index})
		}
	}
	if text := f.unknown(entities); text != "" {
		return nil, badParam, text
	}
	return f.inOrder(entities), ok, ""
}

// groupWords are the words for entities' groups in the error of an entity that
// there is none of.
var groupWords = map[dcgmitest.Group]string{
	dcgmitest.Board: "GPU", dcgmitest.GPUInstance: "GPU_I", dcgmitest.ComputeInstance: "GPU_CI",
	dcgmitest.Switch: "Switch", dcgmitest.CPU: "CPU", dcgmitest.ConnectXAdapter: "ConnectX",
}

// unknown returns what is said of the first entity that does not exist.
func (f *fake) unknown(entities []dcgmitest.Entity) string {
	places := hierarchy(f.scenario)
	count := map[dcgmitest.Group]int{
		dcgmitest.Switch: f.scenario.Switches, dcgmitest.CPU: f.scenario.CPUs,
		dcgmitest.ConnectXAdapter: f.scenario.ConnectX,
	}
	for _, e := range entities {
		known := slices.ContainsFunc(places, func(p place) bool { return p.entity == e })
		if n, counted := count[e.Group]; counted {
			known = e.ID < n
		}
		if e.Group == dcgmitest.Link || e.Group == dcgmitest.Core || known {
			continue
		}
		return fmt.Sprintf("Error: Got error %d %s while adding %s %d to our entity group.",
			badParam, badParam, groupWords[e.Group], e.ID)
	}
	return ""
}

// inOrder returns the entities, each once, in the order of the rows.
func (f *fake) inOrder(entities []dcgmitest.Entity) []dcgmitest.Entity {
	places := hierarchy(f.scenario)
	mig := slices.ContainsFunc(places, func(p place) bool { return p.instance >= 0 })
	at := map[dcgmitest.Entity]int{}
	for i, p := range places {
		at[p.entity] = i
	}
	byRow := func(a, b dcgmitest.Entity) int {
		i, aOnBoard := at[a]
		j, bOnBoard := at[b]
		switch {
		case aOnBoard && bOnBoard:
			return cmp.Compare(i, j)
		case aOnBoard != bOnBoard && aOnBoard:
			return -1
		case aOnBoard != bOnBoard:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
	}
	slices.SortFunc(entities, byRow)
	entities = slices.Compact(entities)
	if !f.release.Since("4.0.0") && !mig {
		// The rows come out of a hash map: any order, but the same in each sample.
		share := func(e dcgmitest.Entity) float64 { return dcgmitest.Share(f.scenario.Seed, 1000*int(e.Group)+e.ID) }
		slices.SortFunc(entities, func(a, b dcgmitest.Entity) int { return cmp.Compare(share(a), share(b)) })
	}
	return entities
}

var (
	slashed  = regexp.MustCompile(`^(\*|\d+|GPU-[-0-9a-f]+)(?:/(\*|\d+))?(?:/(\*|\d+))?$`)
	spans    = regexp.MustCompile(`^\{(\d+)-(\d+)\}$`)
	linkEnds = regexp.MustCompile(`^(gpu|switch)_link:(\d+):(\d+)$`)
)

// entities returns what one token of -i stands for, or what dmon says of it.
func (f *fake) entities(token string) ([]dcgmitest.Entity, string) {
	if m := linkEnds.FindStringSubmatch(token); m != nil && f.release.Since("4.6.0") {
		end := map[string]dcgmitest.Group{"gpu": dcgmitest.Board, "switch": dcgmitest.Switch}[m[1]]
		return []dcgmitest.Entity{{Group: dcgmitest.Link, End: end, ID: number(m[2]), Number: number(m[3])}}, ""
	}
	if found := f.inHierarchy(token); found != nil {
		return found, ""
	}
	return listed(token)
}

// inHierarchy returns the entities that a token of indexes, wildcards or a UUID
// names, nil if it is none or names nothing. An empty list comes of a wildcard.
func (f *fake) inHierarchy(token string) []dcgmitest.Entity {
	m := slashed.FindStringSubmatch(token)
	if m == nil && !strings.HasPrefix(token, "MIG-") {
		return nil
	}
	var found []dcgmitest.Entity
	for _, p := range hierarchy(f.scenario) {
		if m == nil {
			if p.uuid == token {
				found = append(found, p.entity)
			}
			continue
		}
		uuid := slices.ContainsFunc(f.scenario.GPUs, func(g dcgmitest.GPU) bool { return g.Index == p.board && g.UUID == m[1] })
		if (uuid || selects(m[1], p.board)) && selects(m[2], p.instance) && selects(m[3], p.slice) {
			found = append(found, p.entity)
		}
	}
	if found == nil && strings.Contains(token, "*") {
		found = []dcgmitest.Entity{}
	}
	return found
}

// selects says whether a part of a token stands for the id: "" for none.
func selects(part string, id int) bool {
	return part == "" && id < 0 || part == "*" && id >= 0 || part != "" && part == strconv.Itoa(id)
}

// letters are the groups that the first letter of a token's prefix chooses.
var letters = map[byte]dcgmitest.Group{
	'g': dcgmitest.Board, 'n': dcgmitest.Switch, 'v': dcgmitest.VirtualGPU, 'i': dcgmitest.GPUInstance,
	'c': dcgmitest.ComputeInstance, 'l': dcgmitest.Link,
}

// cWords are prefixes in c that mean no compute instance.
var cWords = map[string]dcgmitest.Group{"cpu": dcgmitest.CPU, "core": dcgmitest.Core, "cx": dcgmitest.ConnectXAdapter}

// listed returns what a token such as 3, instance:7 or cpu:{0-2} stands for, or
// what dmon says of it.
func listed(token string) ([]dcgmitest.Entity, string) {
	kind, id, prefixed := strings.Cut(token, ":")
	group := dcgmitest.Board
	switch word := strings.ToLower(kind); {
	case token == "":
		return nil, "Error: Comma without a value detected at token 1 of input "
	case !prefixed:
		id = token
	case word == "" || letters[word[0]] == 0:
		return nil, "Error: invalid entity type: " + token
	case cWords[word] != 0:
		group = cWords[word]
	default:
		group = letters[word[0]]
	}
	first, last := id, id
	if m := spans.FindStringSubmatch(id); m != nil {
		first, last = m[1], m[2]
	} else if strings.HasPrefix(id, "{") {
		return nil, "A malformed range was specified: " + id
	}
	if strings.Trim(id, "{}-0123456789") != "" || id == "" {
		return nil, "Error: Expected numerical entityId instead of " + id
	}
	var found []dcgmitest.Entity
	for i := number(first); i <= number(last); i++ {
		found = append(found, dcgmitest.Entity{Group: group, ID: i})
	}
	return found, ""
}

// number returns digits as a number; what is too long for one is no entity's id.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

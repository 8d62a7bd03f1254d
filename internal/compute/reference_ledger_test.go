package compute

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
)

// refLedger is a second, naive implementation of the ledger's specification: keys are strings,
// each reading looks everything up again, and nothing of the package is called. It takes the
// verdicts as given.
type refLedger struct {
	devices     map[string]*refAccount
	allocations map[string]*refAccount
	departures  int // of devices, so far

	earlierDevices []string            // keys of the previous reading
	earlierHolders map[string][]string // allocation keys by device key, "" for those left out
}

// refAccount is a canonical.Account and what else the reference needs.
type refAccount struct {
	canonical.Account
	utilized float64 // seconds
	went     time.Time
	order    int // of departure, among all devices
	history  []computetest.Reading

	kind, name string // of an allocation, at its start
}

func newRefLedger() *refLedger {
	return &refLedger{
		devices:        map[string]*refAccount{},
		allocations:    map[string]*refAccount{},
		earlierHolders: map[string][]string{},
	}
}

func refKey(d *canonical.Device) string {
	if d.UUID != "" {
		return d.UUID + "|" + d.Instance + "|" + d.Profile
	}
	return d.Hostname + "|" + d.GPU + "|" + d.Instance + "|" + d.Profile
}

// refAllocationKey returns the key of an account with or without Kind and Name.
func refAllocationKey(d *canonical.Device, w canonical.Workload, kind, name string) string {
	return fmt.Sprintf("%s%q %q", refHolder(d, w), kind, name)
}

// refHolder returns the prefix of the keys of all accounts of a workload on a device.
func refHolder(d *canonical.Device, w canonical.Workload) string {
	return fmt.Sprintf("%s of %q ", refKey(d), w)
}

// read takes in a reading. The clock must never be set back.
func (l *refLedger) read(f *canonical.Frame, verdicts []canonical.Verdict, dt time.Duration) {
	l.forget(f.At)
	index := map[string]int{}
	for i := range f.Topology.Devices {
		index[refKey(&f.Topology.Devices[i])] = i
	}
	for _, key := range l.earlierDevices {
		if i, ok := index[key]; ok {
			l.spend(key, &f.Topology.Devices[i], &verdicts[i], dt)
		}
	}
	l.census(f)
	l.setAllocations(f)
}

// forget drops what left too long ago.
func (l *refLedger) forget(at time.Time) {
	for key, a := range l.devices {
		if !a.went.IsZero() && a.went.Add(time.Hour).Before(at) {
			delete(l.devices, key)
		}
	}
	for key, a := range l.allocations {
		if !a.went.IsZero() && a.went.Add(10*time.Minute).Before(at) {
			delete(l.allocations, key)
		}
	}
}

// spend charges a device and its earlier holders.
func (l *refLedger) spend(key string, d *canonical.Device, v *canonical.Verdict, dt time.Duration) {
	a := l.devices[key]
	a.spend(v, dt)
	if d.Instance == "" {
		a.Health[v.Health] += dt
	}
	holders := l.earlierHolders[key]
	for _, holder := range holders {
		if holder != "" { // ignoring odd microseconds
			l.allocations[holder].spend(v, dt/time.Duration(len(holders)))
		}
	}
}

func (a *refAccount) spend(v *canonical.Verdict, dt time.Duration) {
	a.Observed += dt
	a.Classes[v.Class] += dt
	if !math.IsNaN(v.RealUtilization) {
		a.Known += dt
		a.utilized += v.RealUtilization * dt.Seconds()
	}
}

// census takes in the present devices and their XIDs.
func (l *refLedger) census(f *canonical.Frame) {
	var now []string
	for i := range f.Topology.Devices {
		d := &f.Topology.Devices[i]
		key := refKey(d)
		now = append(now, key)
		if l.devices[key] == nil {
			l.devices[key] = &refAccount{}
		}
		a := l.devices[key]
		a.went = time.Time{}
		a.Read = a.Read || !d.Implied
		if d.Instance == "" {
			a.history = append(a.history, computetest.Reading{At: f.At, Row: f.Row(i)})
			changes, last := computetest.XIDChanges(a.history)
			a.XIDChanges, a.XIDChanged = uint64(changes), last
		}
	}
	for _, key := range l.earlierDevices {
		if !slices.Contains(now, key) {
			l.departures++
			l.devices[key].went, l.devices[key].order = f.At, l.departures
		}
	}
	l.earlierDevices = now
}

// setAllocations makes the allocations of f current.
func (l *refLedger) setAllocations(f *canonical.Frame) {
	var before, now []string
	for _, d := range sortedKeys(l.earlierHolders) {
		before = append(before, l.earlierHolders[d]...)
	}
	l.earlierHolders = map[string][]string{}
	if f.AllocationSet != nil {
		for i := range f.Topology.Devices {
			d := &f.Topology.Devices[i]
			holders := make([]string, f.AllocationSet.Holders[i])
			k := 0
			for _, a := range f.AllocationSet.Allocations {
				if a.Device != i {
					continue
				}
				key := refAllocationKey(d, a.Workload, a.Kind, a.Name)
				for _, earlier := range before {
					if strings.HasPrefix(earlier, refHolder(d, a.Workload)) && l.allocations[earlier].kind != "" {
						key = earlier
					}
				}
				if l.allocations[key] == nil {
					l.allocations[key] = &refAccount{kind: a.Kind, name: a.Name}
				}
				l.allocations[key].went = time.Time{}
				holders[k] = key
				now = append(now, key)
				k++
			}
			l.earlierHolders[refKey(d)] = holders
		}
	}
	for _, key := range before {
		if key != "" && !slices.Contains(now, key) {
			l.allocations[key].went = f.At
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// gone returns the devices that left and are remembered, in the order in which they left.
func (l *refLedger) gone() []string {
	var keys []string
	for key, a := range l.devices {
		if !a.went.IsZero() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return l.devices[a].order - l.devices[b].order })
	return keys
}

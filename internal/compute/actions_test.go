package compute

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// remedies are the actions for each state of a condition, after NVIDIA's guides on memory errors,
// debugging and deployment: a restart of the board or its driver remaps rows and retires pages,
// memory without spare rows or with a failed remapping is returned, and overheating, power brakes
// and replays are inspected. The actions for XIDs depend on the code; incidents.txt has them.
var remedies = map[canonical.Condition]map[string]canonical.Action{
	canonical.CondRowRemapFailure:           {"crit": canonical.ActionReplace},
	canonical.CondUncorrectableRemappedRows: {"crit": canonical.ActionReplace, "warn": canonical.ActionCheckHardware},
	canonical.CondPCIeDegraded:              {"warn": canonical.ActionCheckHardware},
	canonical.CondNVLinkFlapping:            {"warn": canonical.ActionCheckHardware},
	canonical.CondPCIeReplay:                {"warn": canonical.ActionCheckHardware},
	canonical.CondGPUTemperature:            {"hot": canonical.ActionCheckHardware},
	canonical.CondMemoryTemperature:         {"hot": canonical.ActionCheckHardware},
	canonical.CondXIDRepeated:               {"warn": canonical.ActionCheckHardware},
	canonical.CondECCDoubleBit:              {"crit": canonical.ActionResetGPU},
	canonical.CondRowRemapPending:           {"warn": canonical.ActionResetGPU},
	canonical.CondRetiredPagesPending:       {"warn": canonical.ActionRebootNode},
	canonical.CondMemoryWorn:                {"crit": canonical.ActionReplace, "warn": canonical.ActionCheckHardware},
	canonical.CondThermalSlowdown:           {"hot": canonical.ActionCheckHardware},
	canonical.CondPowerBrake:                {"warn": canonical.ActionCheckHardware},
	canonical.CondNVLinkErrors:              {"warn": canonical.ActionCheckHardware},
	canonical.CondNVLinkDown:                {"crit": canonical.ActionResetGPU},
	canonical.CondFabric:                    {"crit": canonical.ActionCheckHardware, "warn": canonical.ActionCheckHardware},
	canonical.CondProfilingStalled:          {"warn": canonical.ActionNone},
}

// TestRemedies plays the cases of TestConditions, in which one condition is raised alone.
func TestRemedies(t *testing.T) {
	seen := map[canonical.Action]int{}
	for n, c := range conditionCases() {
		wanted, listed := remedies[c.condition]
		if !listed {
			if 1<<c.condition&ofXIDs == 0 && c.condition != canonical.CondRecoveryAction {
				t.Errorf("%v has no remedy", c.condition)
			}
			continue
		}
		j, top := judgeOf(t, c.condition), topology(canonical.Device{GPU: "0"})
		for i, s := range c.steps {
			want := wanted[s.want] // none while nothing is raised
			if got := j.Judge(frame(top, start.Add(s.at), s.r), nil)[0].Action; got != want {
				t.Errorf("case %d, %v: reading %d: %v asks for %v, want %v", n, c.condition, i, s.want, got, want)
			}
			seen[want]++
		}
	}
	for _, a := range []canonical.Action{canonical.ActionNone, canonical.ActionCheckHardware, canonical.ActionResetGPU, canonical.ActionRebootNode, canonical.ActionReplace} {
		if seen[a] == 0 {
			t.Errorf("no case asks for %v", a)
		}
	}
}

// TestWorstRemedy raises two conditions at once, and lets the driver ask for something. The events
// ask for the same.
func TestWorstRemedy(t *testing.T) {
	pending, failed := canonical.RowRemapPending, canonical.RowRemapFailure
	for name, c := range map[string]struct {
		r    reading
		want canonical.Action
	}{
		"nothing":                        {reading{pending: 0, failed: 0}, canonical.ActionNone},
		"a reset and a replacement":      {reading{pending: 1, failed: 1}, canonical.ActionReplace},
		"a look and a reset":             {reading{canonical.Temperature: 99, pending: 1}, canonical.ActionResetGPU},
		"the driver alone":               {reading{canonical.RecoveryAction: 2}, canonical.ActionRebootNode},
		"the driver, and more":           {reading{canonical.RecoveryAction: 1, failed: 1}, canonical.ActionReplace},
		"the driver, and less":           {reading{canonical.RecoveryAction: 2, pending: 1}, canonical.ActionRebootNode},
		"a program, the driver says":     {reading{canonical.RecoveryAction: 3}, canonical.ActionRestartApplication},
		"a look, and the driver nothing": {reading{canonical.RecoveryAction: 0, canonical.Temperature: 99}, canonical.ActionCheckHardware},
	} {
		j := newJudge(t, nil)
		if got := j.Judge(frame(topology(canonical.Device{GPU: "0"}), start, c.r), nil)[0].Action; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		told := canonical.ActionNone
		for _, e := range j.Events(nil) {
			told = max(told, e.Action)
		}
		if told != c.want {
			t.Errorf("%s: the events ask for %v, want %v", name, told, c.want)
		}
	}
}

// TestRemedyOfTheDriverAlone: the driver's recovery action counts even if its condition is off.
func TestRemedyOfTheDriverAlone(t *testing.T) {
	for value, want := range map[float64]canonical.Action{0: canonical.ActionNone, 1: canonical.ActionResetGPU, 2: canonical.ActionRebootNode} {
		j := newJudge(t, func(o *Options) { o.States[canonical.CondRecoveryAction] = 0 })
		v := j.Judge(frame(topology(canonical.Device{GPU: "0"}), start, reading{canonical.RecoveryAction: value, canonical.Temperature: 50}), nil)[0]
		if v.Action != want || v.Health != canonical.HealthOK {
			t.Errorf("recovery action %v: %v and %v, want %v and ok", value, v.Action, v.Health, want)
		}
	}
}

// judgeOf returns a judge with one condition.
func judgeOf(t *testing.T, only canonical.Condition) *Judge {
	return newJudge(t, func(o *Options) {
		for i := range o.States {
			if canonical.Condition(i) != only {
				o.States[i] = 0
			}
		}
	})
}

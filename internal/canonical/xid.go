package canonical

import "time"

// Severity is what an XID, an error code of the driver such as 79 for a board that it lost, says
// about the board, mildest first.
type Severity uint8

// The severities.
const (
	// SeverityNone codes only inform.
	SeverityNone Severity = iota
	// SeveritySympathetic codes follow from another error, as 45 does for each process that it
	// ends: they raise nothing.
	SeveritySympathetic
	// SeverityApplication codes are a program's fault, unless they repeat on one board.
	SeverityApplication
	// SeverityWarning codes say that something is wrong with the board, which keeps working.
	SeverityWarning
	// SeverityFatal codes say that the board is not fit for work until someone acts.
	SeverityFatal
	NumSeverities
)

// Severities is indexed by Severity.
var Severities = [NumSeverities]string{"none", "sympathetic", "application", "warning", "fatal"}

// String returns the severity's name.
func (s Severity) String() string { return Severities[s] }

// Action is what an operator has to do about a board, in rising order of effort.
type Action uint8

// The actions.
const (
	ActionNone Action = iota
	ActionRestartApplication
	ActionCheckHardware
	ActionResetGPU
	ActionRestartVM
	ActionRebootNode
	ActionReplace
	NumActions
)

// ActionIfGone is what to do about a board that is gone: nothing less brings it back.
const ActionIfGone = ActionRebootNode

// Actions is indexed by Action.
var Actions = [NumActions]string{"none", "restart_application", "check_hardware", "reset_gpu", "restart_vm", "reboot_node", "replace"}

// ActionAdvice says what to do for each Action.
var ActionAdvice = [NumActions]string{
	ActionNone:               "Nothing needs to be done.",
	ActionRestartApplication: "Restart the program that ran on the GPU: the GPU itself works.",
	ActionCheckHardware:      "The GPU works. Plan an inspection: cables, seating, cooling and power, and the counters that rose.",
	ActionResetGPU:           "Drain the GPU of jobs, and reset it: nvidia-smi --gpu-reset -i INDEX. Boards that NVLink connects are reset together.",
	ActionRestartVM:          "Restart the virtual machine.",
	ActionRebootNode:         "Drain the node and reboot it: nothing less brings the GPU back.",
	ActionReplace:            "Drain the node, and have the board replaced.",
}

// String returns the action's name.
func (a Action) String() string { return Actions[a] }

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An unknown action is ActionNone.
func (a *Action) UnmarshalText(text []byte) error {
	*a, _ = ActionOf(string(text))
	return nil
}

// Witness is a reporter of XIDs. An error that several report counts once.
type Witness uint8

// The witnesses.
const (
	// WitnessWindow counts over the last minutes: only its rises have a meaning.
	WitnessWindow Witness = iota
	// WitnessTotal counts from the start of the exporter.
	WitnessTotal
	// WitnessDriver receives each XID from the driver's library, and counts from the program's start.
	WitnessDriver
	// WitnessKernel is the kernel's log, and counts from where reading began.
	WitnessKernel
	NumWitnesses
)

// XIDCount is how often a Witness reported a code on a board.
type XIDCount struct {
	// Device is the index of the board for Topology.At: a lost board is often among the
	// Absent by the time its XID is reported.
	Device  int
	Code    uint32
	Witness Witness
	// Count falls when the witness restarts, and that of WitnessWindow also when errors leave its
	// window.
	Count uint64
	// Last is when the latest one came, zero if the witness does not say.
	Last time.Time
}

// XIDEvent is one XID with what the kernel's log says about it.
type XIDEvent struct {
	// Device is the index of the board for Topology.At.
	Device int
	At     time.Time
	Code   uint32
	// Reset is set if the driver was loaded then, which resets the board; Code is 0.
	Reset bool
	// Decoded reports whether the sub-code in the record decides Severity and Action; otherwise the
	// table of codes does.
	Decoded  bool
	Severity Severity
	Action   Action
	// Count is how often it occurred since the previous Frame, at least 1: a flood of one record is
	// one event, with the time and text of the first.
	Count uint64
	// Text is the rest of the record after the code, printable and on one line: sub-code, link, or
	// what happened. PID and Process are those of the running program, 0 and "" if the record does
	// not say.
	Text    string
	PID     int
	Process string
}

// SXIDCount is how often an NVSwitch reported an error code.
type SXIDCount struct {
	// Hostname is the machine's; PCIBusID is in the form of PCIAddress.
	Hostname, PCIBusID string
	Code               uint32
	Fatal              bool
	Count              uint64
}

// SwitchFault is a fatal SXID of an NVSwitch. A node whose log is read has one with Code 0, so that
// the absence of others means that there were none.
type SwitchFault struct {
	// Hostname is the machine's; PCIBusID is in the form of PCIAddress.
	Hostname, PCIBusID string
	Code               uint32
	// At is when it occurred, or, if Resolved is set, when an operator resolved it.
	At       time.Time
	Resolved bool
}

// EventKind says what happened in an Event.
type EventKind string

// The kinds of events.
const (
	EventXID      EventKind = "xid"
	EventSXID     EventKind = "sxid"     // of an NVSwitch
	EventDriver   EventKind = "driver"   // another line of the driver about a board
	EventReset    EventKind = "reset"    // of a board: it was reset, or its node restarted
	EventResolved EventKind = "resolved" // a fatal XID is dealt with
	EventRaised   EventKind = "raised"   // a condition was raised
	EventCleared  EventKind = "cleared"  // a condition was cleared
)

// Event is something that happened to a board, or to a switch. Fields that do not apply to its
// kind are zero.
type Event struct {
	At   time.Time
	Kind EventKind
	// Hostname, GPU, UUID and PCIBusID are the Device's; a switch has neither UUID nor GPU.
	Hostname, GPU, UUID, PCIBusID string
	// Code is an XID or SXID, and Count how often it occurred at once.
	Code     uint32
	Count    uint64
	Severity Severity
	Action   Action
	// Condition and State are those of EventRaised and EventCleared.
	Condition Condition
	State     Health
	// Text has details, on one printable line. PID and Process are those of the program that an
	// EventXID names, 0 and "" if it names none.
	Text    string
	PID     int
	Process string
}

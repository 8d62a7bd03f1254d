// Package faults is the fault suite: what the program does when something around it, or
// given to it, breaks. Each row of its tables is a fault that befalls a program which
// serves, or one that is to start. testdata/FAULTS.md lists the rows, and is written from
// them; `make faults` runs them. It has tests alone.
package faults

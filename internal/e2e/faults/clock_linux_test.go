package faults

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// clockFaults are of time.
func clockFaults() []fault {
	return []fault{
		{does: "samples have the time of an hour ago", exporter: value("41 " + past), seen: left("41 PAST", "stale")},
		{does: "samples have the time of tomorrow", exporter: value("41 " + future), seen: left("41 FUTURE", "stale")},
		{does: "samples have a time before 1970", exporter: value("41 -1000"), seen: seen{says: []string{counted("skipped_lines_total", "1×N")}, lacks: []string{"41 -1000", "kpulse_gpu_temperature_celsius{"}}},
		{does: "the exporter's Date is of 1999, and its page may be cached for a year", exporter: with(reading(during), "Date", "Fri, 31 Dec 1999 23:59:59 GMT", "Age", "86400", "Cache-Control", "max-age=31536000"),
			seen: seen{says: []string{temperature(during)}}},
		{does: "the program is suspended while it is scraped, and goes on", each: suspended, seen: seen{says: []string{temperature(during)}}},
		{does: "XIDs of the kernel's log are older than the program", heldBy: "e2e.TestKernelLogOfBefore", words: "they are known, and no events of now"},
		{does: "no value of the exporter changes any more", heldBy: "e2e.TestGoldenOverTime", words: "200; `kpulse_source_unchanged_seconds` rises"},
	}
}

// suspended stops the program, has it scraped, and lets it go on: the scrape is answered.
func suspended(w *world) {
	w.Helper()
	process := w.child.Cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		w.Fatal(err)
	}
	w.until(func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.Pid))
		if _, state, _ := strings.Cut(string(stat), ") "); err != nil || !strings.HasPrefix(state, "T") {
			return "it does not stop: " + string(stat)
		}
		return ""
	})
	conn := w.dial() // the kernel accepts it, and keeps the request
	defer func() { _ = conn.Close() }()
	_, sent := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
	if err := process.Signal(syscall.SIGCONT); err != nil || sent != nil {
		w.Fatal(err, sent)
	}
	answer, err := io.ReadAll(conn)
	if text := string(answer); err != nil || !strings.HasPrefix(text, "HTTP/1.1 200 ") || !strings.Contains(text, temperature(during)) {
		w.Errorf("the scrape of a suspended program gets %v %.1000s", err, text)
	}
}

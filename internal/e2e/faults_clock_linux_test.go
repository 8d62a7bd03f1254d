package e2e

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// clockFaults returns the faults of time.
func clockFaults() []fault {
	return []fault{
		{does: "samples have the time of an hour ago", exporter: value("41 " + past), seen: left("41 PAST", "stale")},
		{does: "samples have a time before 1970", exporter: value("41 -1000"), seen: seen{says: []string{ofSource("skipped_lines_total", "1×N")}, lacks: []string{"41 -1000", "kpulse_gpu_temperature_celsius{"}}},
		{does: "the exporter's Date is in 1999, and its page may be cached for a year", exporter: with(reading(during), "Date", "Fri, 31 Dec 1999 23:59:59 GMT", "Age", "86400", "Cache-Control", "max-age=31536000"),
			seen: seen{says: []string{temperature(during)}}},
		{does: "the program is suspended while it is scraped, and continues", each: suspended, seen: seen{says: []string{temperature(during)}}},
	}
}

// stops sends a signal to a process and waits for a state as in proc(5).
func (w *world) stops(pid int, sig syscall.Signal, want string) {
	w.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		w.Fatal(err)
	}
	w.until(func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, state, _ := strings.Cut(string(stat), ") "); err != nil || !strings.HasPrefix(state, want) {
			return "the process is not in state " + want + ": " + string(stat)
		}
		return ""
	})
}

// suspended stops the program, scrapes it, and resumes it: the scrape is answered.
func suspended(w *world) {
	w.Helper()
	process := w.child.Cmd.Process
	w.stops(process.Pid, syscall.SIGSTOP, "T")
	conn := w.dial() // the kernel accepts the connection and keeps the request
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

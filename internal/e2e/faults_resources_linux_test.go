package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func resourceFaults() []fault {
	well := seen{says: []string{temperature(during)}}
	var held connections // of one fault
	return append(memoryFaults(), []fault{
		{does: "clients take all of 32 descriptors, and leave", shell: "ulimit -n 32", begin: func(w *world) {
			held.open(w, 64, "")
			w.until(func() string { return w.logs("cannot accept connections") })
			held.close()
		}, seen: seen{says: well.says, log: []string{"too many open files", "LimitNOFILE="}}},
		{does: "GOMEMLIMIT is 1 MiB", env: []string{"GOMEMLIMIT=1MiB"}, seen: well},
		{does: "stdin and stdout are closed", shell: "exec <&- >&-", seen: well},
		{does: "the working directory is removed", begin: removes("."), lasts: true, seen: well},
		{does: "the address space is limited to 2 GiB", shell: "ulimit -v 2097152", seen: well},
		{does: "the reader of the log is gone", config: settings, shell: "mkfifo log; cat log >&2 & echo $! >reader; exec 2>log", begin: and(losesItsReader, puts("config.yml", "presett: ai\n"), failsToReload), end: and(puts("config.yml", settings), reloads),
			seen: seen{says: well.says, metrics: []string{reloaded + "0"}}},
	}...)
}

// losesItsReader kills the reader of the program's log.
func losesItsReader(w *world) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "reader"))
	if err != nil {
		w.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	w.stops(pid, syscall.SIGKILL, "Z")
}

package app

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// askCompletions is how the shells ask for completions, in what kingpin writes for
// --completion-script-bash and -zsh: with the words of the command line up to that under
// the cursor.
const askCompletions = "--completion-bash"

// complete writes the words that may follow, of the commands that are none of kingpin's,
// and reports whether these are all. The shell picks those that begin as is typed.
func complete(words []string, stdout io.Writer) (all bool) {
	typed := ""
	if last := len(words) - 1; last >= 0 {
		typed, words = words[last], words[:last]
	}
	if strings.HasPrefix(typed, "-") {
		return false
	}
	var next []string
	switch strings.Join(words[:min(len(words), 2)], " ") {
	case "":
		fmt.Fprintln(stdout, "check\ndoctor\nexplain")
		return false // flags may follow too
	case "check":
		for _, c := range checks {
			next = append(next, c.word)
		}
		next = append(next, "health", "alive")
	case "explain":
		next = []string{"xid"}
	case "explain xid":
		for _, r := range canonical.XIDs() {
			next = append(next, fmt.Sprint(r.Code))
		}
	case "check config", "check rules", "check counters": // files, which the shell knows
	default:
		return false
	}
	for _, word := range next {
		if !slices.Contains(words, word) {
			fmt.Fprintln(stdout, word)
		}
	}
	return true
}

package settings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// AskCompletions is the flag with which kingpin's scripts for bash and zsh ask for completions;
// the words of the command line up to the cursor follow it.
const AskCompletions = "--completion-bash"

// Complete writes the words that may follow, for the commands that kingpin does not know, and
// reports whether these are all. The shell selects those with the typed prefix.
func Complete(words []string, stdout io.Writer) (all bool) {
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
		next = []string{"config", "rules", "counters", "health", "alive"}
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

// commandWords are the words that a command line may begin with instead of flags.
var commandWords = []string{"check", "doctor", "explain"}

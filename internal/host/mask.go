package host

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// masked stands in the place of what may be a secret.
	masked = "***"
	// cutMark stands where text was cut off.
	cutMark = "…"
	// maxCommand is the length of a command line as it is shown, in bytes.
	maxCommand = 256
	// maxPasses is how often a text is masked at most before it is given up.
	maxPasses = 8
	// gap is between two arguments while they are masked; they are printable, so it
	// is in none.
	gap = "\x00"
)

// mask returns a command line on one line of printable text, at most maxCommand
// bytes long, with everything masked that looks like a secret. Rather too much is
// masked than too little. It goes on until nothing is left to mask, so that the
// words of its result are masked to the same again.
func mask(args []string) string {
	text := maskOnce(args)
	for range maxPasses {
		again := maskOnce(strings.Fields(text))
		if again == text {
			return text
		}
		text = again
	}
	return masked
}

func maskOnce(args []string) string {
	plain := make([]string, len(args))
	for i, arg := range args {
		plain[i] = printable(arg)
	}
	text := strings.Join(plain, gap)
	for i := range rules {
		text = rules[i].apply(text)
	}
	return cut(strings.ReplaceAll(text, gap, " "))
}

// printable returns an argument without what would break a line, a terminal or
// UTF-8. An empty one is shown as a shell would have it written.
func printable(arg string) string {
	arg = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(arg, string(utf8.RuneError)))
	if arg = strings.Join(strings.Fields(arg), " "); arg == "" {
		return "''"
	}
	return arg
}

// cut shortens text to maxCommand bytes.
func cut(text string) string {
	if len(text) <= maxCommand {
		return text
	}
	end := maxCommand - len(cutMark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + cutMark
}

// rule is one way to find secrets. apply gets a command line whose arguments have
// gaps between them.
type rule struct {
	finds string
	apply func(text string) string
}

// rules are applied in this order.
var rules = [...]rule{
	{"keys in PEM", replace(`-----BEGIN [^\x00]*`, masked)},
	{"Authorization headers", replace(`(?i)(authorization\\*["']?[ \x00]?[:=][ \x00]?\\*["']?)(?:(?:bearer|basic|token|digest|negotiate|apikey)[ \x00])?[^\x00"'\\]+`, "${1}"+masked)},
	{"bearer tokens", replace(`(?i)\b(bearer[ \x00])[\w.~+/=-]{6,}`, "${1}"+masked)},
	{"credentials in URLs", replace(`://[^ \x00/?#]*@`, "://"+masked+"@")},
	{"passwords in URLs that should have been escaped", replace(`://[^ \x00/?#:]*:[^ \x00]*@`, "://"+masked+"@")},
	{"user:password@host", replace(`([\w.%+-]+):[^ \x00/@]+@`, "${1}:"+masked+"@")},
	{"tokens by their makers' prefixes", replace(tokenPrefixes, masked)},
	{"URLs that are secret by themselves", replace(`(hooks\.slack\.com/[a-z]+/|discord(?:app)?\.com/api/webhooks/)[^ \x00"'\\]+`, "${1}"+masked)},
	{"NAME=VALUE, NAME: VALUE and JSON", maskAssignments},
	{"--name value", maskFlags},
	{"config set name value", maskSettings},
	{"flags of known programs", maskPrograms},
	{"random text", maskBlobs},
}

// tokenPrefixes matches tokens whose maker gave them a prefix: Hugging Face,
// GitHub, GitLab, OpenAI and its like, AWS, Slack, NVIDIA, npm, PyPI, Google,
// SendGrid, Stripe, Docker Hub, DigitalOcean, and JSON web tokens.
const tokenPrefixes = `\b(?:` +
	`hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|` +
	`sk-[\w-]{8,}|[sr]k_(?:live|test)_\w{8,}|(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{8,}|` +
	`xox[abeoprs]-[\w-]{8,}|nvapi-[\w-]{8,}|npm_[A-Za-z0-9]{8,}|pypi-[\w-]{16,}|` +
	`AIza[\w-]{16,}|ya29\.[\w-]{8,}|SG\.[\w-]{8,}\.[\w-]{8,}|dckr_pat_[\w-]{8,}|dop_v1_\w{8,}|` +
	`eyJ[\w-]{8,}\.[\w.-]{4,})`

// replace is a rule that replaces what a regular expression matches.
func replace(pattern, with string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(text string) string { return re.ReplaceAllString(text, with) }
}

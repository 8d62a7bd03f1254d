package host

import (
	"regexp"
	"strings"
)

var (
	flagWithValue = regexp.MustCompile(`(?:^|[ \x00"'(])(--?[A-Za-z][\w.-]*)([ \x00])`)
	// anotherFlag matches what stands in the place of a value if a flag has none.
	anotherFlag = regexp.MustCompile(`^(?:--[a-z][a-z0-9-]*|-[A-Za-z])(?:[= \x00]|$)`)
)

// maskFlags masks the values of flags that say that they are secret, where the
// value is an argument of its own.
func maskFlags(text string) string {
	var out strings.Builder
	done := 0
	for {
		m := flagWithValue.FindStringSubmatchIndex(text[done:])
		if m == nil {
			out.WriteString(text[done:])
			return out.String()
		}
		name, between := text[done+m[2]:done+m[3]], text[done+m[4]:done+m[5]]
		value := done + m[5]
		if anotherFlag.MatchString(text[value:]) || !isSecret(name, text[value:endOf(text, value, endOfWord)]) {
			out.WriteString(text[done : value-1])
			done = value - 1 // the next flag begins with what is between them
			continue
		}
		out.WriteString(text[done:value])
		done = maskNext(&out, text, value, between)
	}
}

// maskNext masks the value that follows a flag after a gap or a space: the whole
// argument, or in a text such as that of sh -c a word or what is in quotes.
func maskNext(out *strings.Builder, text string, value int, between string) int {
	if end := endOf(text, value, endOfArgument); between == gap && !isDone(text[value:end]) {
		out.WriteString(masked)
		return end
	}
	return maskValue(out, text, value, endOfWord)
}

// setting matches what writes a value into a file of settings, as aws configure set
// and pip config set do.
var setting = regexp.MustCompile(`\b(?:configure|config)[ \x00]set[ \x00]([\w.-]+)([ \x00])`)

// maskSettings masks the values of settings whose names say that they are secret.
func maskSettings(text string) string {
	var out strings.Builder
	done := 0
	for {
		m := setting.FindStringSubmatchIndex(text[done:])
		if m == nil {
			out.WriteString(text[done:])
			return out.String()
		}
		name, between, value := text[done+m[2]:done+m[3]], text[done+m[4]:done+m[5]], done+m[5]
		out.WriteString(text[done:value])
		done = value
		if isSecret(name, text[value:endOf(text, value, endOfWord)]) {
			done = maskNext(&out, text, value, between)
		}
	}
}

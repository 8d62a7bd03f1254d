package host

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// secretWords make a name secret wherever they stand in it, secretEndings at its
	// end, secretLast as its last word. But for that, names are compared in lower case
	// and without separators.
	secretWords   = []string{"secret", "token", "passw", "passphrase", "credential", "apikey", "private", "auth", "cookie", "bearer", "jwt", "signature", "webhook"}
	secretEndings = []string{"key", "keys", "keyid", "pass", "passin", "passout", "pwd", "pw", "cred", "creds", "sig", "fromliteral"}
	secretLast    = []string{"pat", "otp", "totp", "psk"}

	// words removes separators, and words that hold a secret word by chance.
	words = strings.NewReplacer("_", "", "-", "", ".", "", "+", "",
		"authoriz", "auth", "author", "", "tokeniz", "", "bypass", "", "compass", "")

	// amount matches a number as it is given to --max-tokens and its like.
	amount = regexp.MustCompile(`^[0-9][0-9.,_e+]{0,11}[kKmMbBtT]?[,)}\]"']*$`)
)

// isSecret tells by the name of a value that it is secret.
func isSecret(name, value string) bool {
	name = strings.ToLower(name)
	last := name[strings.LastIndexAny(name, "_-.+")+1:]
	name = words.Replace(name)
	if amount.MatchString(value) {
		// How many tokens; one token may be a number.
		name = strings.ReplaceAll(name, "tokens", "")
	}
	contains := func(word string) bool { return strings.Contains(name, word) }
	ends := func(word string) bool { return strings.HasSuffix(name, word) }
	return slices.ContainsFunc(secretWords, contains) || slices.ContainsFunc(secretEndings, ends) || slices.Contains(secretLast, last)
}

package selection

import (
	"strings"
	"unicode"
)

// slurmIDs returns the ids and ranges in a list of GPUs as Slurm may write it: 0,2-3,
// or in its notation for lists, [0,2-3], with or without a word before the numbers, as in
// gpu1, gpu:1 and n[0-1]. UUIDs stay as they are.
func slurmIDs(list string) []string {
	var ids []string
	for list != "" {
		end := itemEnd(list)
		item := strings.TrimSpace(list[:end])
		list = strings.TrimPrefix(list[end:], ",")
		switch _, inner, is := strings.Cut(item, "["); {
		case hasPrefixFold(item, gpuPrefix) || hasPrefixFold(item, migPrefix):
			ids = append(ids, item)
		case is:
			ids = append(ids, strings.Split(strings.TrimSuffix(inner, "]"), ",")...)
		default:
			ids = append(ids, withoutWord(item))
		}
	}
	return ids
}

// itemEnd returns where the first item of a list ends: at a comma outside of brackets.
func itemEnd(list string) int {
	within := false
	for i, r := range list {
		switch {
		case r == '[' || r == ']':
			within = r == '['
		case r == ',' && !within:
			return i
		}
	}
	return len(list)
}

// withoutWord removes letters and a colon, or one of these, from before a number.
func withoutWord(item string) string {
	return strings.TrimPrefix(strings.TrimLeftFunc(item, unicode.IsLetter), ":")
}

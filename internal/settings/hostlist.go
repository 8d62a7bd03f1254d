package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostHosts bounds a list of hosts: a longer one is a mistake.
const mostHosts = 1 << 14

// Hosts returns the names in a list of hosts as Slurm writes it, such as node[01-04,7],login. An item
// that holds an @, which may be a URL with a password, and an IPv6 address in brackets stay as they are.
func Hosts(list string) (hosts []string, err error) {
	depth, from := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			if item := strings.TrimSpace(list[from:i]); item != "" {
				if hosts, err = appendHosts(hosts, "", item); err != nil {
					return nil, err
				}
			}
			from = i + 1
		}
		if depth < 0 || depth > 1 {
			break
		}
	}
	if depth != 0 {
		return nil, errors.New("brackets do not match; write a list of hosts such as node[1-4,7]")
	}
	return hosts, nil
}

// appendHosts appends the hosts of an item whose text after a prefix is rest.
func appendHosts(hosts []string, prefix, rest string) ([]string, error) {
	before, after, found := strings.Cut(rest, "[")
	numbers, suffix, closed := strings.Cut(after, "]")
	switch {
	case !found || !closed || strings.Contains(prefix+rest, "@"):
		if len(hosts) >= mostHosts {
			return nil, fmt.Errorf("more than %d hosts; name fewer", mostHosts)
		}
		return append(hosts, prefix+rest), nil
	case strings.Contains(numbers, ":"):
		return appendHosts(hosts, prefix+before+"["+numbers+"]", suffix)
	}
	for part := range strings.SplitSeq(numbers, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 32)
		last, err2 := strconv.ParseUint(high, 10, 32)
		if err != nil || err2 != nil || last < first || last-first >= mostHosts {
			return nil, fmt.Errorf("[%s] is no list of numbers; write a list of hosts such as node[1-4,7]", numbers)
		}
		for n := first; n <= last; n++ {
			if hosts, err = appendHosts(hosts, fmt.Sprintf("%s%s%0*d", prefix, before, len(low), n), suffix); err != nil {
				return nil, err
			}
		}
	}
	return hosts, nil
}

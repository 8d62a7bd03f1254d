package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostHosts bounds a list of hosts: a longer one is a mistake.
const mostHosts = 1 << 14

var errUnmatched = errors.New("brackets do not match")

// Hosts returns the names in a list of hosts as Slurm writes it, such as node[01-04,7],login. An item that holds an @, which may be a URL
// with a password, and an IPv6 address in brackets stay as they are.
func Hosts(list string) (hosts []string, err error) {
	for list != "" {
		end, inside := len(list), false
		for i, c := range list {
			if inside = c == '[' || inside && c != ']'; c == ',' && !inside {
				end = i
				break
			}
		}
		item := strings.TrimSpace(list[:end])
		list = strings.TrimPrefix(list[end:], ",")
		if inside {
			err = errUnmatched
		} else if item != "" {
			hosts, err = appendHosts(hosts, "", item)
		}
		if err != nil {
			return nil, err
		}
	}
	return hosts, nil
}

// appendHosts appends the hosts of an item, of which the text before rest is expanded.
func appendHosts(hosts []string, expanded, rest string) ([]string, error) {
	before, after, found := strings.Cut(rest, "[")
	numbers, suffix, closed := strings.Cut(after, "]")
	switch {
	case strings.Contains(expanded+rest, "@"), !found && !strings.Contains(rest, "]"):
		if len(hosts) == mostHosts {
			return nil, fmt.Errorf("more than %d hosts", mostHosts)
		}
		return append(hosts, expanded+rest), nil
	case !closed || strings.Contains(before+numbers, "]") || strings.Contains(numbers, "["):
		return nil, errUnmatched
	case strings.Contains(numbers, ":"):
		return appendHosts(hosts, expanded+before+"["+numbers+"]", suffix)
	}
	for part := range strings.SplitSeq(numbers, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 32)
		last, err2 := first, error(nil)
		if isRange {
			last, err2 = strconv.ParseUint(high, 10, 32)
		}
		if err != nil || err2 != nil || last < first || last-first >= mostHosts {
			return nil, fmt.Errorf("[%s] has no numbers", numbers)
		}
		for n := first; n <= last; n++ {
			if hosts, err = appendHosts(hosts, fmt.Sprintf("%s%s%0*d", expanded, before, len(low), n), suffix); err != nil {
				return nil, err
			}
		}
	}
	return hosts, nil
}

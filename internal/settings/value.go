package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// Duration is a time.Duration that is written as 15s or 10m, or in bare seconds.
type Duration time.Duration

// Set reads a duration. It implements kingpin.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if seconds, e := strconv.ParseFloat(s, 64); e == nil && math.Abs(seconds) < 1e9 {
		v, err = time.Duration(seconds*float64(time.Second)), nil
		if v == 0 && seconds != 0 {
			return fmt.Errorf("%s is out of range; write at least 1ns, or 0", s)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration; write 15s, 500ms or bare seconds such as 2", s)
	}
	*d = Duration(v)
	return nil
}

// String returns the duration as it can be set.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, d) }

// MarshalYAML implements yaml.Marshaler.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// KernelLog is a file with records of the kernel's log; "" means none.
type KernelLog string

// DefaultKernelLog is Linux's device for them.
const DefaultKernelLog KernelLog = "/dev/kmsg"

// Set reads a path, or true for the default and false for none. It implements
// kingpin.Value.
func (k *KernelLog) Set(s string) error {
	*k = switched(s, DefaultKernelLog)
	return nil
}

// String returns the path.
func (k KernelLog) String() string { return string(k) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (k *KernelLog) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, k) }

// MarshalYAML implements yaml.Marshaler.
func (k KernelLog) MarshalYAML() (any, error) { return switchable(k), nil }

// PodResources is the path of the kubelet's pod-resources socket; "" means none.
type PodResources string

// DefaultPodResources is the kubelet's default.
const DefaultPodResources PodResources = holders.PodResourcesSocket

// Set reads a path, or true for the default and false for none. It implements
// kingpin.Value.
func (p *PodResources) Set(s string) error {
	if s == "" {
		return errors.New("the path is empty; write that of the kubelet's socket, or true for the usual one, or false")
	}
	socket := switched(s, DefaultPodResources)
	if socket != "" && !strings.HasPrefix(string(socket), "/") {
		return fmt.Errorf("%q is not a path of a socket; begin it with /, as in %s, or write true for that one", s, DefaultPodResources)
	}
	*p = socket
	return nil
}

// String returns the path.
func (p PodResources) String() string { return string(p) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *PodResources) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, p) }

// MarshalYAML implements yaml.Marshaler.
func (p PodResources) MarshalYAML() (any, error) { return switchable(p), nil }

// switched returns the path that a text means: standard, none, or the text itself.
func switched[T ~string](text string, standard T) T {
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		return standard
	case "false", "no", "0", "":
		return ""
	}
	return T(text)
}

// switchable returns a value as it can be set, false for none.
func switchable[T ~string](value T) any {
	if value == "" {
		return false
	}
	return string(value)
}

// Size is a number of bytes, from 1 to 1 TiB.
type Size int64

// byteUnits are the suffixes of a size, longest first.
var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// Set reads a size such as 64MiB. It implements kingpin.Value.
func (z *Size) Set(s string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err == nil && n == 0 {
			return fmt.Errorf("%q is not a limit; write at least one byte, such as 1KiB", s)
		}
		if err != nil || n < 1 || n > (1<<40)/u.size {
			break
		}
		*z = Size(n * u.size)
		return nil
	}
	return fmt.Errorf("%q is not a size; write 64MiB, 1GiB or bytes", s)
}

// String returns the size in the largest binary unit that gives a whole number.
func (z Size) String() string {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; int64(z)%u.size == 0 {
			return strconv.FormatInt(int64(z)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(z), 10)
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (z *Size) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, z) }

// MarshalYAML implements yaml.Marshaler.
func (z Size) MarshalYAML() (any, error) { return z.String(), nil }

// Count is a number of things, at least 1.
type Count int

// Set reads a count. It implements kingpin.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number of at least 1; write it in digits", s)
	}
	*c = Count(n)
	return nil
}

// String returns the number.
func (c Count) String() string { return strconv.Itoa(int(c)) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *Count) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, c) }

// unmarshal sets a value from a scalar, and refuses others as yaml.v3 does.
func unmarshal(n *yaml.Node, into interface{ Set(string) error }) error {
	if n.Kind == yaml.ScalarNode && into.Set(n.Value) == nil {
		return nil
	}
	value := ""
	if n.Kind == yaml.ScalarNode {
		value = " `" + n.Value + "`"
	}
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s%s into %s", n.Line, n.ShortTag(), value, reflect.TypeOf(into).Elem())}}
}

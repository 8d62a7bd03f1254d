package export

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// scale is how to write a reading: its factor, its divisor and its number of decimals; -1
// is as many as it needs.
type scale struct {
	times, over float64
	decimals    int
}

var (
	percents = scale{100, 1, 2}
	decimal  = scale{1, 1, 4}
	exact    = scale{1, 1, -1}
)

// in returns the column of a reading.
func in(name string, f canonical.Field, s scale) Column {
	return Column{name, func(dst []byte, r *row) []byte {
		return appendNumber(dst, r.values[f]*s.times/s.over, s.decimals)
	}, f}
}

// appendNumber appends v with that many decimals, nothing if it was not read.
func appendNumber(dst []byte, v float64, decimals int) []byte {
	switch {
	case !canonical.Given(v) || math.IsInf(v, 0):
		return dst
	case decimals >= 0:
		return strconv.AppendFloat(dst, v, 'f', decimals, 64)
	case math.Abs(v) < 1e15 && v == math.Trunc(v): // longer ones have an exponent
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// appendTime appends seconds since 1970 with two decimals, truncated so that no row is in
// the future.
func appendTime(dst []byte, t time.Time) []byte {
	hundredths := t.UnixMilli() / 10
	dst = strconv.AppendInt(dst, hundredths/100, 10)
	return append(dst, '.', '0'+byte(hundredths%100/10), '0'+byte(hundredths%10))
}

// appendText appends s as printable text, quoted if necessary.
func appendText(dst []byte, s string) []byte {
	quoted := strings.ContainsAny(s, `,"`) || strings.HasPrefix(s, " ")
	if quoted {
		dst = append(dst, '"')
	}
	for _, r := range s {
		if r == '"' {
			dst = append(dst, '"')
		}
		dst = utf8.AppendRune(dst, diag.Rune(r))
	}
	if quoted {
		dst = append(dst, '"')
	}
	return dst
}

// idOf names a device on its node: 0, or 7:1 for instance 1 of GPU 7.
func idOf(d *canonical.Device) string {
	if d.IsInstance() {
		return d.GPU + ":" + d.Instance
	}
	return d.GPU
}

// shortModel returns the model in one word, as KempnerPulse writes it: H100 for
// NVIDIA H100 80GB HBM3, RTX6000 for NVIDIA RTX 6000 Ada Generation; MI300X for AMD Instinct MI300X (ours).
func shortModel(model string) string {
	model = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(model, "NVIDIA "), "AMD Instinct "))
	if rest, ok := strings.CutPrefix(model, "RTX"); ok {
		rest = strings.TrimLeft(rest, " ")
		if n := len(rest) - len(strings.TrimLeft(rest, "0123456789")); n > 0 {
			return model[:len("RTX")] + rest[:n]
		}
	}
	word, _, _ := strings.Cut(model, " ")
	word, _, _ = strings.Cut(word, "-")
	return word
}

// appendHealth appends the state in capitals, as KempnerPulse does. It belongs to the
// board: in rows of instances it is empty.
func appendHealth(dst []byte, r *row) []byte {
	if r.device.IsInstance() {
		return dst
	}
	for _, c := range []byte(r.verdict.Health.String()) {
		dst = append(dst, c-'a'+'A')
	}
	return dst
}

// appendConditions appends the raised conditions.
func appendConditions(dst []byte, r *row) []byte {
	if r.device.IsInstance() {
		return dst
	}
	return append(dst, strings.Join(raised(r.verdict), ";")...)
}

// appendWorkloads appends the workloads of a device: namespace/pod/container for a pod,
// the id for a job.
func appendWorkloads(dst []byte, allocations []canonical.Allocation) []byte {
	var names []string
	for i := range allocations {
		w := &allocations[i].Workload
		var parts []string
		for _, part := range [...]string{w.Namespace, w.Pod, w.Container} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		name := strings.Join(parts, "/")
		if w.Job != "" {
			name = strings.TrimSpace(name + " job " + w.Job + " " + allocations[i].Owner())
		}
		names = append(names, name)
	}
	return appendText(dst, strings.Join(names, ";"))
}

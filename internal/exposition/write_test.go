package exposition

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

func TestAppendFloat(t *testing.T) {
	for _, row := range []struct {
		v    float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{1, "1"},
		{9, "9"},
		{10, "10"},
		{-3, "-3"},
		{0.5, "0.5"},
		{0.97, "0.97"},
		{0.812345, "0.812345"},
		{0.382373112, "0.382373112"},
		{86400.000000001, "86400.000000001"},
		{0.0001234567, "0.0001234567"},
		{0.000012345678, "1.2345678e-05"},
		{0.000001, "0.000001"},
		{0.0000005, "5e-07"},
		{1.0 / 3, "0.3333333333333333"},
		{-0.25, "-0.25"},
		{312.5, "312.5"},
		{8765432.109, "8765432.109"},
		{34359738368, "34359738368"},
		{1<<53 - 1, "9007199254740991"},
		{1 << 53, "9.007199254740992e+15"},
		{1 << 63, "9.223372036854776e+18"},
		{-1 << 63, "-9.223372036854776e+18"},
		{1e300, "1e+300"},
		{9007199254.740993, "9.007199254740993e+09"},
		{math.Inf(1), "+Inf"},
		{math.Inf(-1), "-Inf"},
		{math.NaN(), "NaN"},
	} {
		if got := string(AppendFloat(nil, row.v)); got != row.want {
			t.Errorf("%v is written %s, want %s", row.v, got, row.want)
		}
	}
}

// TestPlainFloats compares what we write without strconv with what strconv writes.
func TestPlainFloats(t *testing.T) {
	check := func(v float64) {
		t.Helper()
		if got, want := string(AppendFloat(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
			t.Fatalf("%s is written %s", want, got)
		}
	}
	for n := 0; n < 2_000_000; n += slow.Rounds(7, 1) {
		check(float64(n) / decimals)
	}
	for n := uint64(leastNanos); n < mostNanos; n = n*1000/999 + 1 {
		check(float64(n) / nanos)
	}
	for n := uint64(1); n < maxExact; n = n*10/9 + 1 {
		check(float64(n))
		check(-float64(n))
	}
	for power := uint64(10); power < maxExact; power *= 10 {
		check(float64(power - 1))
		check(float64(power))
		check(float64(power + 1))
	}
}

// FuzzFloatReadsBack lets Prometheus read what we write.
func FuzzFloatReadsBack(f *testing.F) {
	for _, v := range []float64{0, 1, 0.1, 0.3, 0.123456, 2.5e-7, 1e15 + 0.5, 1e22, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		f.Add(v)
		f.Add(math.Nextafter(v, 2))
	}
	f.Fuzz(func(t *testing.T, v float64) {
		for _, v := range []float64{v, math.Round(math.Mod(v, 1e9)*1e6) / 1e6, math.Round(math.Mod(v, 1e6)*1e9) / 1e9} {
			text := AppendFloat(nil, v)
			p := textparse.NewPromParser(append(append([]byte("m "), text...), '\n'), labels.NewSymbolTable(), false)
			if _, err := p.Next(); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if _, _, got := p.Series(); got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
				t.Fatalf("%s reads back as %s, want %s", text, strconv.FormatFloat(got, 'x', -1, 64), strconv.FormatFloat(v, 'x', -1, 64))
			}
		}
	})
}

func BenchmarkAppendFloat(b *testing.B) {
	for name, v := range map[string]float64{"digit": 1, "integer": 34359738368, "six-digits": 0.812345, "nine-digits": 382.373112654, "any": 1.0 / 3} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 32)
			for b.Loop() {
				buf = AppendFloat(buf[:0], v)
			}
		})
		b.Run(name+"/strconv", func(b *testing.B) {
			buf := make([]byte, 0, 32)
			for b.Loop() {
				buf = strconv.AppendFloat(buf[:0], v, 'g', -1, 64)
			}
		})
	}
}

// FuzzTextReadsBack lets Prometheus read the labels and HELP texts that we write.
func FuzzTextReadsBack(f *testing.F) {
	for _, text := range []string{"", "plain", `a"b\n\`, "two\nlines", "é€\xff\x00", "} 1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Each byte that is not UTF-8, and NUL, becomes U+FFFD.
		want := strings.ReplaceAll(string([]rune(text)), "\x00", "\uFFFD")
		body := AppendHeader(nil, "m", want, "gauge")
		body = append(AppendLabel(append(body, "m{"...), "x", text), "} 1\n"...)
		p := textparse.NewPromParser(body, labels.NewSymbolTable(), false)
		if _, err := p.Next(); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		// A text of only blanks is none; CR is not special.
		if _, help := p.Help(); string(help) != want && strings.Trim(want, " \t") != "" {
			t.Errorf("%q: the help is %q, want %q", body, help, want)
		}
		for range 2 {
			if _, err := p.Next(); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
		}
		var l labels.Labels
		if p.Labels(&l); l.Get("x") != want {
			t.Errorf("%q: the label is %q, want %q", body, l.Get("x"), want)
		}
		block := "{" + string(AppendLabel(nil, "x", text)) + "}"
		if got := ParseLabels(block, nil); len(got) != 1 || got[0].Value != want {
			t.Errorf("%s: we read %q, want %q", block, got, want)
		}
	})
}

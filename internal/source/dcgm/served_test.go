//go:build linux

package dcgm

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// constant makes every field of every entity read its field id, doubles plus
// 0.25.
func constant() (readings []dcgmtest.Reading) {
	for _, f := range Fields {
		if f.Foreign() {
			continue
		}
		v := float64(f.ID)
		if f.Float {
			v += .25
		}
		readings = append(readings, dcgmtest.Reading{Field: f.ID, Value: v})
	}
	return readings
}

// cutBoards returns two boards, the second with two instances.
func cutBoards() []dcgmtest.GPU {
	gpus := dcgmtest.Boards(2)
	gpus[1] = gpus[1].Cut(2)
	return gpus
}

// The page of a tick, with nvidia-smi and, except for the labels and the family that only it provides, without.
func TestPages(t *testing.T) {
	smis := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?nvlink_limit_bytes_per_second.*\n|,GPU_I_PROFILE="[^"]+"`)
	for _, help := range []string{"with", "without"} {
		t.Run(help+" nvidia-smi", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards(), Readings: constant()}, func(o *Options) {
				o.Hostname = "gpu07"
				if help == "with" {
					f := newSMI(t)
					f.says("list", smiList)
					f.says("report", smiReport)
					f.says("links", smiLinks)
					f.install(o)
				}
			})
			w.until("a whole reading", func(b *raw.Batch, _ error) bool { return has(b, "NBWLT") && has(b, "SMACT") })
			checkConstant(t, &w.last)
			if *update && help == "with" {
				if err := os.WriteFile("testdata/page.prom", w.last.AppendAll(nil), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile("testdata/page.prom")
			if err != nil {
				t.Fatal(err)
			}
			if help == "without" {
				want = smis.ReplaceAll(want, nil)
			}
			if got := w.last.AppendAll(nil); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// checkConstant checks that every device has the values of constant.
func checkConstant(t *testing.T, b *raw.Batch) {
	t.Helper()
	for _, s := range b.Samples {
		name := b.Dict.Family(s.Family).Name
		for _, f := range Fields {
			if f.Family == name && math.Floor(s.Value) != float64(f.ID) && !f.Foreign() {
				t.Errorf("%s%s %v, want %d", name, b.Dict.Block(s.Labels), s.Value, f.ID)
			}
		}
	}
	if got, want := devices(b, "POWER", true), "0="+uuid0+" 1/7="+uuid1+" 1/8="+uuid1; got != want {
		t.Errorf("devices %s, want %s", got, want)
	}
}

// A board with MIG instances has no row of its own, as with the exporter, so that
// sums over all rows count nothing twice. The board's own readings are kept.
func TestACutBoardIsItsInstances(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards(), Readings: constant()})
	w.until("a whole reading", func(b *raw.Batch, _ error) bool { return has(b, "FBUSD") && has(b, "SMACT") })
	sum := 0.
	for _, s := range w.last.Samples {
		if columnOf(&w.last, s) == "FBUSD" {
			sum += s.Value
		}
	}
	if sum != 3*252 {
		t.Errorf("%v MiB are in use on a board and two instances with 252 each", sum)
	}
	var frame canonical.Frame
	var report translate.Report
	translator(t).Translate(&frame, &w.last, &report)
	var got []string
	for i, d := range frame.Topology.Devices {
		row := frame.Row(i)
		got = append(got, fmt.Sprintf("%s/%s %v %v", d.GPU, d.Instance, row[canonical.Power], row[canonical.FramebufferUsed]))
	}
	const mib = 252 << 20
	want := []string{fmt.Sprintf("0/ 155.25 %v", float64(mib)), "1/ 155.25 NaN", fmt.Sprintf("1/7 NaN %v", float64(mib)), fmt.Sprintf("1/8 NaN %v", float64(mib))}
	if !slices.Equal(got, want) {
		t.Errorf("devices %q, want %q", got, want)
	}
}

func translator(t *testing.T) *translate.Translator {
	t.Helper()
	tr, err := translate.New(translate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestJobsComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards()}, func(o *Options) { o.JobMappingDir = dir })
	jobs := func(want string) {
		t.Helper()
		w.until("jobs "+want, func(b *raw.Batch, _ error) bool {
			var list []string
			for _, s := range b.Samples {
				if columnOf(b, s) == "POWER" {
					list = append(list, label(b, s, "hpc_job"))
				}
			}
			return strings.Join(list, ",") == want
		})
	}
	file := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	jobs(",,")
	file("0", "11\n12\n")
	file("1.8", "13\n")
	jobs("11,12,,13")
	file("0", "")
	jobs(",,13")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	jobs(",,")
	w.untilWhole()
	if n := w.log.count("WARN", "job mapping directory", dir); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

package compute

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWarningTemperature(t *testing.T) {
	d := DefaultThresholds()
	for model, want := range map[string]float64{
		"":                               93,
		"Tesla T4":                       93,
		"NVIDIA A100-SXM4-40GB":          93,
		"NVIDIA H100 80GB HBM3":          95,
		"NVIDIA H100 PCIe":               95,
		"NVIDIA H200":                    95,
		"NVIDIA RTX 6000 Ada Generation": 92,
		"NVIDIA RTX A6000":               93,
	} {
		if got := d.warning(model); got != want {
			t.Errorf("warning(%q) = %v, want %v", model, got, want)
		}
	}
	d.Temperature = 80
	if got := d.warning("NVIDIA A100-SXM4-40GB"); got != 93 {
		t.Errorf("the temperature of other models is that of an A100: %v", got)
	}
	d.Temperatures = append([]ModelTemperature{{"H100 PCIe", 85}}, d.Temperatures...)
	if got := d.warning("NVIDIA H100 PCIe"); got != 85 {
		t.Errorf("the first row that matches does not count: %v", got)
	}
}

// TestTemperaturesAreNamed: an error about a warning temperature has the key that the config file
// gives it.
func TestTemperaturesAreNamed(t *testing.T) {
	d := DefaultThresholds()
	d.Temperature, d.Temperatures = -1, []ModelTemperature{{"H100", 95}, {"L40S", 201}, {"", 201}}
	var keys []string
	for _, wrong := range d.check() {
		keys = append(keys, wrong.Option)
	}
	if want := []string{"temperatures.L40S", "temperatures.", "temperatures.other"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// keyOf returns the name of a threshold in the config file, which has Temperature elsewhere.
func keyOf(name string) string {
	if name == "Temperature" {
		return "it"
	}
	name = regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2")
	for _, word := range []string{"FP64", "IO", "PCIe", "DRAM", "SM"} {
		name = strings.Replace(name, word+"FP", word+"_FP", 1)
		name = strings.Replace(name, word+"SM", word+"_SM", 1)
	}
	return strings.ToLower(strings.Replace(name, "PCIe", "pcie", 1))
}

// TestEveryThresholdIsValidated breaks each number of Thresholds in turn, so that none is added
// without validation, and wants each to be named as in the config file.
func TestEveryThresholdIsValidated(t *testing.T) {
	kind := reflect.TypeFor[Thresholds]()
	bad := map[reflect.Type][]any{
		reflect.TypeFor[float64]():       {math.NaN(), -0.5, math.Inf(1)},
		reflect.TypeFor[int]():           {-1},
		reflect.TypeFor[time.Duration](): {-time.Nanosecond},
	}
	for i := range kind.NumField() {
		f := kind.Field(i)
		if bad[f.Type] == nil && f.Name != "Temperatures" { // TestNewRejects has those
			t.Errorf("there is no bad value to test %s with", f.Name)
		}
		for _, v := range bad[f.Type] {
			o := DefaultOptions()
			reflect.ValueOf(&o.Thresholds).Elem().Field(i).Set(reflect.ValueOf(v))
			wrong := o.Check()
			if key := "thresholds." + keyOf(f.Name); len(wrong) != 1 || wrong[0].Option != key && f.Name != "Temperature" {
				t.Errorf("%s = %v: %+v, want one of %s", f.Name, v, wrong, key)
			}
			if _, err := New(o); err == nil || !strings.Contains(err.Error(), ": make "+keyOf(f.Name)+" ") || strings.Contains(err.Error(), f.Name) {
				t.Errorf("%s = %v: %v: does not say what is right", f.Name, v, err)
			}
		}
	}
}

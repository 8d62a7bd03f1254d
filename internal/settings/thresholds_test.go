package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// setTo returns a file that sets a threshold to a value that is no threshold's default.
func setTo(key string) string {
	if strings.HasSuffix(key, "_readings") {
		return "thresholds: {" + key + ": 17}"
	}
	return "thresholds: {" + key + ": 0.123}" // a fraction, an amount, or seconds
}

// TestEveryThresholdHasItsKey: each key sets the field of its name, as idle_engine IdleEngine, and no
// other; and every field has one, but for the temperatures.
func TestEveryThresholdHasItsKey(t *testing.T) {
	all := NewOptions().thresholds()
	for _, threshold := range all {
		key := threshold.key
		c, err := Parse("t.yml", []byte(setTo(key)))
		if err != nil {
			t.Fatal(err)
		}
		got, standard := reflect.ValueOf(c.Judge.Thresholds), reflect.ValueOf(compute.DefaultThresholds())
		var names []string
		for i := range got.NumField() {
			if !reflect.DeepEqual(got.Field(i).Interface(), standard.Field(i).Interface()) {
				names = append(names, got.Type().Field(i).Name)
			}
		}
		if len(names) != 1 || !strings.EqualFold(names[0], strings.ReplaceAll(key, "_", "")) {
			t.Errorf("%s sets %v", key, names)
		}
	}
	if fields := reflect.TypeFor[compute.Thresholds]().NumField(); len(all) != fields-2 {
		t.Errorf("%d keys set %d fields", len(all), fields)
	}
}

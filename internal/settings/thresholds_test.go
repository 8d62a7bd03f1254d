package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// elsewhere are the fields of compute.Thresholds that temperatures set.
var elsewhere = []string{"Temperatures", "Temperature"}

// TestEveryThresholdHasItsKey: each key changes one threshold, and each
// threshold has its key.
func TestEveryThresholdHasItsKey(t *testing.T) {
	keyOf := map[string]string{}
	for _, key := range keysOf[thresholds]() {
		c, err := Parse("t.yml", setTo(key))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range changed(c.Judge.Thresholds) {
			if keyOf[name] != "" {
				t.Errorf("%s is set by %s and by %s", name, keyOf[name], key)
			}
			keyOf[name] = key
		}
	}
	if want := len(keysOf[thresholds]()); len(keyOf) != want {
		t.Errorf("%d keys set %d figures: %v", want, len(keyOf), keyOf)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[compute.Thresholds]()) {
		if keyOf[field.Name] == "" && !slices.Contains(elsewhere, field.Name) {
			t.Errorf("no key sets %s", field.Name)
		}
	}
}

// setTo returns a file that sets a threshold to a value that is no threshold's default.
func setTo(key string) []byte {
	if strings.HasSuffix(key, "_readings") {
		return []byte("thresholds: {" + key + ": 17}")
	}
	return []byte("thresholds: {" + key + ": 0.123}") // a fraction, an amount, or seconds
}

// changed returns the fields in which t is not the default.
func changed(t compute.Thresholds) (names []string) {
	got, standard := reflect.ValueOf(t), reflect.ValueOf(compute.DefaultThresholds())
	for _, field := range reflect.VisibleFields(got.Type()) {
		if !reflect.DeepEqual(got.FieldByIndex(field.Index).Interface(), standard.FieldByIndex(field.Index).Interface()) {
			names = append(names, field.Name)
		}
	}
	return names
}

// TestKeysSayWhatTheySet: each key has the name of its field, as idle_engine that of IdleEngine.
func TestKeysSayWhatTheySet(t *testing.T) {
	for _, key := range keysOf[thresholds]() {
		c, err := Parse("t.yml", setTo(key))
		if err != nil {
			t.Fatal(err)
		}
		if names := changed(c.Judge.Thresholds); len(names) != 1 || snakeless(names[0]) != snakeless(key) {
			t.Errorf("%s sets %v", key, names)
		}
	}
}

// snakeless returns a name in lower case, without underscores.
func snakeless(name string) string {
	var letters []byte
	for _, b := range []byte(name) {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != '_' {
			letters = append(letters, b)
		}
	}
	return string(letters)
}

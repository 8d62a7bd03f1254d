package settings

import "reflect"

// Changes returns the keys of the settings that differ in fresh. It resets those that need a
// restart, and those that are fixed, and returns these keys too.
func Changes(was, fresh *Options, fixed func(key string) bool) (keys, kept []string) {
	for i := range table {
		s := &table[i]
		before, now := s.at(was), s.at(fresh)
		switch {
		case s.Key == "" || reflect.DeepEqual(before, now):
		case s.restart || fixed(s.Key):
			kept = append(kept, s.Key)
			reflect.ValueOf(now).Elem().Set(reflect.ValueOf(before).Elem())
		default:
			keys = append(keys, s.Key)
		}
	}
	return keys, kept
}

package holders

import linked "container/list"

// recent remembers the most recently used values, of at most size keys. It is not safe for
// concurrent use.
type recent[K comparable, V any] struct {
	size  int
	byKey map[K]*linked.Element
	order linked.List // of *kept[K, V]; the front was used last
}

type kept[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](size int) *recent[K, V] {
	return &recent[K, V]{size: size, byKey: map[K]*linked.Element{}}
}

// get returns the value of key, which counts as used, and whether there is one. It
// allocates nothing.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	e, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// put sets the value of key, and forgets the least recently used value if there are too
// many.
func (r *recent[K, V]) put(key K, value V) {
	if e, ok := r.byKey[key]; ok {
		e.Value.(*kept[K, V]).value = value
		r.order.MoveToFront(e)
		return
	}
	r.byKey[key] = r.order.PushFront(&kept[K, V]{key, value})
	if last := r.order.Back(); len(r.byKey) > r.size {
		delete(r.byKey, r.order.Remove(last).(*kept[K, V]).key)
	}
}

// remove forgets key.
func (r *recent[K, V]) remove(key K) {
	if e, ok := r.byKey[key]; ok {
		r.order.Remove(e)
		delete(r.byKey, key)
	}
}

func (r *recent[K, V]) len() int { return len(r.byKey) }

package engine

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// rule is a rules.Rule and its results of the last evaluation.
type rule struct {
	rules.Rule
	inputs  map[uint64][]input   // by the hash of the expression's labels
	outputs map[uint64][]*result // by the hash of the recorded labels
	known   int                  // number of inputs
	order   []*result            // in the order of the last evaluation
	free    []*result            // memory for the next order
	number  uint64               // of the evaluation
	failure string               // of the last evaluation, "" for success

	line                              atomic.Int64 // a reload may move it
	evaluations, failures, duplicates atomic.Uint64
	samples                           atomic.Int64
	nanos                             atomic.Int64 // spent on all evaluations
}

// input is the labels of a result of the expression, and the series recorded from it.
type input struct {
	labels labels.Labels
	result *result
}

// result is one series that a rule records.
type result struct {
	labels labels.Labels
	text   string  // its line in the exposition, up to the value
	series *series // in the store, nil if no rule selects it
	number uint64  // of the last evaluation that returned it
	value  float64
}

// like reports whether r records the same as other.
func (r *rule) like(other *rule) bool {
	if r.Record != other.Record || r.Text != other.Text || len(r.Labels) != len(other.Labels) {
		return false
	}
	for name, value := range r.Labels {
		if v, ok := other.Labels[name]; !ok || v != value {
			return false
		}
	}
	return true
}

// errDuplicate is an error in Prometheus too.
var errDuplicate = errors.New("two results have the same labels after the rule's are applied; aggregate them, or do not set a label that distinguishes them")

// errLabelName prevents a page that Prometheus 2 would refuse as a whole.
var errLabelName = errors.New("a result has a label name that the text format does not allow; have label_replace write letters, digits and _")

// record stores the results of the expression. After an error the rule has no results:
// earlier ones must not pass for current ones.
func (r *rule) record(vector promql.Vector, now *evaluation) error {
	r.number++
	before := r.order
	r.order = r.free[:0]
	err := r.gather(vector, now)
	if err != nil {
		r.order = r.order[:0]
		r.number++ // no result has this number
	}
	now.budget -= len(r.order)
	for _, x := range r.order {
		if x.series != nil {
			now.store.add(x.series, now.at, x.value)
		}
	}
	for _, x := range before {
		if x.number != r.number && x.series != nil {
			now.store.end(x.series, now.at)
		}
	}
	clear(before)
	r.free = before
	r.forget()
	r.samples.Store(int64(len(r.order)))
	return err
}

// gather fills order from vector.
func (r *rule) gather(vector promql.Vector, now *evaluation) error {
	if err := now.allow(len(vector)); err != nil {
		return err
	}
	for i := range vector {
		if vector[i].H != nil {
			return errors.New("a result is a native histogram, which the text format cannot represent; record a number from it, such as its histogram_count()")
		}
		x := r.find(vector[i].Metric, now)
		if x.text == "" {
			return errLabelName
		}
		if x.number == r.number {
			return errDuplicate
		}
		x.number, x.value = r.number, vector[i].F
		r.order = append(r.order, x)
	}
	return nil
}

// find returns the result for labels that the expression returned.
func (r *rule) find(given labels.Labels, now *evaluation) *result {
	hash := given.Hash()
	for _, in := range r.inputs[hash] {
		if labels.Equal(in.labels, given) {
			return in.result
		}
	}
	if r.inputs == nil {
		r.inputs, r.outputs = map[uint64][]input{}, map[uint64][]*result{}
	}
	x := r.output(given, now)
	r.inputs[hash] = append(r.inputs[hash], input{given.Copy(), x})
	r.known++
	return x
}

// output returns the result with the labels of given and the rule's own.
func (r *rule) output(given labels.Labels, now *evaluation) *result {
	b := labels.NewBuilder(given)
	b.Set(model.MetricNameLabel, r.Record)
	for name, value := range r.Labels {
		b.Set(name, value)
	}
	set := b.Labels()
	hash := set.Hash()
	for _, x := range r.outputs[hash] {
		if labels.Equal(x.labels, set) {
			return x
		}
	}
	x := &result{labels: set, text: seriesText(set), series: now.seriesOf(set)}
	r.outputs[hash] = append(r.outputs[hash], x)
	return x
}

// forget drops what the last evaluation did not return, once that is the larger part.
func (r *rule) forget() {
	const slack = 64
	if r.known <= 2*len(r.order)+slack {
		return
	}
	inputs := r.inputs
	r.inputs, r.outputs, r.known = map[uint64][]input{}, map[uint64][]*result{}, 0
	for hash, list := range inputs {
		for _, in := range list {
			if in.result.number == r.number {
				r.inputs[hash] = append(r.inputs[hash], in)
				r.known++
			}
		}
	}
	for _, x := range r.order {
		hash := x.labels.Hash()
		r.outputs[hash] = append(r.outputs[hash], x)
	}
}

// end marks all results as gone from t on.
func (r *rule) end(st *store, t int64) {
	for _, x := range r.order {
		if x.series != nil {
			st.end(x.series, t)
		}
	}
}

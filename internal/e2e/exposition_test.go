package e2e

import (
	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// series are the samples of an exposition by their labels.
type series = e2etest.Series

// Short names of common helpers.
var (
	parseExposition = e2etest.ParseExposition
	checkExposition = e2etest.CheckExposition
)

// labelsOf returns the labels of a series, including its name.
func labelsOf(name string) map[string]string {
	all := map[string]string{}
	for _, l := range exposition.ParseLabels(name, nil) {
		all[l.Name] = l.Value
	}
	return all
}

// samplesOf returns the values of the series of a family that have some labels.
func samplesOf(s series, family string, want map[string]string) (values []float64) {
	for name, v := range s {
		ls := labelsOf(name)
		ok := ls["__name__"] == family
		for label, value := range want {
			ok = ok && ls[label] == value
		}
		if ok {
			values = append(values, v)
		}
	}
	return values
}

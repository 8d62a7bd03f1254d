package app

import (
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// form returns the form of our own series. Modes that read directly and show readings use the
// full form.
func (o *options) form() expose.Form {
	return expose.Form{Full: o.Series.Form == settings.FullSeries || o.Mode() != settings.ModeServe}
}

// servedForm is form with the exclusions of --series.exclude.
func (o *options) servedForm() expose.Form {
	f := o.form()
	if o.Mode() == settings.ModeServe {
		f.Exclude, _ = o.Series.Excluded() // was checked
	}
	return f
}

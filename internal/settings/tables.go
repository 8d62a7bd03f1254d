package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// showPreset returns the preset, nil if weights replace it.
func (o *Options) showPreset() any {
	if o.Judge.Preset == compute.Custom {
		return nil
	}
	return o.Judge.Preset
}

// weightKeys are the keys of weights.
var weightKeys = []string{"sm", "tensor", "dram", "engine"}

// readWeights reads weights, which replace a preset.
func (o *Options) readWeights(v entry) {
	if v.isNull() || v.file.lines["preset"] > 0 {
		v.reject("cannot be empty, or beside a preset; remove one of the two")
		return
	}
	w, given, before := canonical.Weights{}, 0, len(v.file.problems)
	v.keys("all of sm, tensor, dram and engine, 0 for none", weightKeys, func(key string, v entry) {
		v.into([]*float64{&w.SM, &w.Tensor, &w.DRAM, &w.Engine}[slices.Index(weightKeys, key)])
		given++
	})
	switch {
	case len(v.file.problems) > before:
	case given < len(weightKeys):
		v.reject("contain %d of 4 numbers; give all of sm, tensor, dram and engine, 0 for none", given)
	case w == canonical.Weights{}:
		v.reject("are all 0; make at least one of them positive")
	default:
		o.Judge.Preset, o.Judge.Weights = compute.Custom, w
	}
}

// showWeights returns the weights if they replace the preset.
func (o *Options) showWeights() any {
	w := &o.Judge.Weights
	if o.Judge.Preset != compute.Custom {
		return nil
	}
	return mapping("sm", w.SM, "tensor", w.Tensor, "dram", w.DRAM, "engine", w.Engine)
}

// capital matches a capital letter.
var capital = diag.Pattern("[A-Z]")

// thresholdFields returns pointers to the thresholds that are single values, by key.
func thresholdFields(t *compute.Thresholds) (keys []string, fields map[string]any) {
	fields = map[string]any{}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		key, kind := v.Type().Field(i).Tag.Get("yaml"), v.Field(i).Kind()
		if kind == reflect.Int || kind == reflect.Int64 { // a count or a duration, whose name is the key in capitals
			key = strings.ToLower(strings.TrimPrefix(capital().ReplaceAllString(v.Type().Field(i).Name, "_$0"), "_"))
		}
		if key != "-" {
			keys, fields[key] = append(keys, key), v.Field(i).Addr().Interface()
		}
	}
	return keys, fields
}

func (o *Options) readThresholds(v entry) {
	keys, fields := thresholdFields(&o.Judge.Thresholds)
	v.keys("thresholds such as idle_engine: 0.05", keys, func(key string, v entry) { v.into(fields[key]) })
}

func (o *Options) showThresholds() any {
	keys, fields := thresholdFields(&o.Judge.Thresholds)
	var pairs []any
	for _, key := range keys {
		pairs = append(pairs, key, plainValue(fields[key]))
	}
	return mapping(pairs...)
}

// otherModels is the key of the temperature for all models without one of their own.
const otherModels = "other"

// readTemperatures reads warning temperatures. The file's rows precede the built-in ones of other
// models: the first that matches a board counts.
func (o *Options) readTemperatures(v entry) {
	t := &o.Judge.Thresholds
	var rows []compute.ModelTemperature
	v.keys("degrees Celsius by model, such as H100: 95", nil, func(model string, v entry) {
		row := compute.ModelTemperature{Model: model}
		if v.into(&row.Celsius); model == otherModels {
			t.Temperature = row.Celsius
			return
		}
		rows = append(rows, row)
	})
	for _, row := range t.Temperatures {
		if !slices.ContainsFunc(rows, func(own compute.ModelTemperature) bool { return own.Model == row.Model }) {
			rows = append(rows, row)
		}
	}
	t.Temperatures = rows
}

func (o *Options) showTemperatures() any {
	var pairs []any
	for _, row := range o.Judge.Thresholds.Temperatures {
		pairs = append(pairs, row.Model, row.Celsius)
	}
	return mapping(append(pairs, otherModels, o.Judge.Thresholds.Temperature)...)
}

// stateWords are the words for what a condition raises, beside default.
var stateWords = []struct {
	word   string
	raises canonical.HealthSet
}{{"hot", canonical.RaisesHot}, {"warn", canonical.RaisesWarn}, {"crit", canonical.RaisesCrit}, {"off", 0}}

func (o *Options) readStates(v entry) {
	v.keys("states by condition, such as pcie_replay: off", canonical.ConditionNames(), func(name string, v entry) {
		condition, _ := canonical.ConditionOf(name)
		word, ok := v.text()
		if !ok || word == "default" {
			return
		}
		for _, s := range stateWords {
			if strings.EqualFold(word, s.word) {
				o.Judge.States[condition] = s.raises
				return
			}
		}
		v.reject("%q is not a state a condition can raise; write hot, warn, crit, default, or off to leave the condition out", word)
	})
}

func (o *Options) showStates() any {
	var pairs []any
	for condition, raises := range o.Judge.States {
		word := "default"
		for _, s := range stateWords {
			if s.raises == raises {
				word = s.word
			}
		}
		pairs = append(pairs, canonical.Condition(condition).String(), word)
	}
	return mapping(pairs...)
}

// readXIDs reads changes to the table of XIDs. A severity alone has the action that fits it.
func (o *Options) readXIDs(v entry) {
	v.keys("severities by code, such as 109: warning", nil, func(name string, v entry) {
		code, err := strconv.ParseUint(name, 10, 32)
		if err != nil || code == 0 || code > canonical.HighestXID || strconv.FormatUint(code, 10) != name {
			v.reject("is not an XID, which is a number from 1 to %d; write severities by code, such as 109: warning", canonical.HighestXID)
			return
		}
		before := len(v.file.problems)
		known, _ := canonical.XIDOf(uint32(code))
		row, said := compute.XIDOverride{Severity: known.Severity, Action: known.Action}, false
		severity := func(v entry) {
			word, ok := v.text()
			if s, known := canonical.SeverityOf(word); ok && known {
				row = compute.OverrideXID(uint32(code), s)
			} else if ok {
				v.reject("%q is not a severity%s", word, diag.Instead(word, canonical.Severities[:]))
			}
			said = true
		}
		if v.Kind == yaml.MappingNode {
			var action *entry
			v.keys("", []string{"severity", "action"}, func(key string, v entry) {
				if said = true; key == "action" {
					action = &v
				} else {
					severity(v)
				}
			})
			if action != nil { // after the severity, which has an action of its own
				if word, ok := action.text(); ok {
					if row.Action, ok = canonical.ActionOf(word); !ok {
						action.reject("%q is not an action%s", word, diag.Instead(word, canonical.Actions[:]))
					}
				}
			}
		} else {
			severity(v)
		}
		if !said && len(v.file.problems) == before {
			v.reject("says nothing; write a severity, such as warning, or severity and action, such as {severity: none, action: none}")
		}
		if o.Judge.XIDs == nil {
			o.Judge.XIDs = map[uint32]compute.XIDOverride{}
		}
		o.Judge.XIDs[uint32(code)] = row
	})
}

func (o *Options) showXIDs() any {
	all := map[string]any{}
	for code, row := range o.Judge.XIDs {
		var value any = row.Severity.String()
		if compute.OverrideXID(code, row.Severity) != row {
			value = mapping("severity", row.Severity.String(), "action", row.Action.String())
		}
		all[strconv.FormatUint(uint64(code), 10)] = value
	}
	return all
}

// units are all units that translate can convert.
var units = []string{
	string(translate.Ratio), string(translate.Percent), string(translate.Bytes), string(translate.MiB), string(translate.BytesPerSecond),
	string(translate.NVLinkMegabytes), string(translate.Watts), string(translate.Joules), string(translate.Millijoules),
	string(translate.Celsius), string(translate.Hertz), string(translate.Megahertz), string(translate.Seconds), string(translate.Nanoseconds),
	string(translate.Number),
}

const wantRow = "rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"

// readDialect reads additions to the dialect.
func (o *Options) readDialect(v entry) {
	families := map[string]int{} // the line of the row, by family
	for _, item := range v.items(wantRow) {
		if item.isNull() {
			item.reject("is empty; write a value, or remove the key")
			continue
		}
		if row, ok := readDialectRow(item); ok {
			for _, name := range row.Names {
				if first, twice := families[name]; twice {
					item.reject("family %q has a meaning from line %d already; leave it out", name, first)
				}
				families[name] = item.Line
			}
			o.Rows = append(o.Rows, row)
		}
	}
}

func readDialectRow(item entry) (row translate.Row, ok bool) {
	var field, unit string
	labels, before := map[string]string{}, len(item.file.problems)
	item.keys(wantRow, []string{"names", "field", "unit", "labels"}, func(key string, v entry) {
		switch key {
		case "names":
			for _, name := range v.items("one such as [NAME, NAME]") {
				if text, ok := name.text(); ok {
					row.Names = append(row.Names, text)
					checkFamily(name, text)
				}
			}
		case "field":
			v.into(&field)
		case "unit":
			if v.into(&unit); unit != "" && !slices.Contains(units, unit) {
				v.reject("%q is not a unit; use one of %s", unit, strings.Join(units, ", "))
			}
		case "labels":
			v.keys("labels such as {severity: correctable}", nil, func(name string, v entry) {
				labels[name], _ = v.text()
			})
		}
	})
	if len(item.file.problems) > before {
		return row, false
	}
	for _, need := range []struct{ key, value string }{{"names", strings.Join(row.Names, "")}, {"field", field}, {"unit", unit}} {
		if need.value == "" {
			item.reject("has no %s; write %s", need.key, wantRow)
			return row, false
		}
	}
	row.Unit = translate.Unit(unit)
	if row.Field, ok = fieldOf(item, field, labels); !ok {
		return row, false
	}
	if _, err := translate.New(translate.Options{Rows: []translate.Row{row}}); err != nil {
		item.reject("%v", cmp.Or(errors.Unwrap(err), err)) // without the row number, which is always 1 here
		return row, false
	}
	return row, true
}

// checkFamily rejects the name of a family that cannot be read.
func checkFamily(v entry, name string) {
	switch {
	case name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:") != "" || '0' <= name[0] && name[0] <= '9':
		v.reject("%q is not a name of a family; use letters, digits, _ and :", name)
	case strings.HasPrefix(name, canonical.Prefix):
		v.reject("%q is named like the proxy's own series, which are not read again; name the exporter's family", name)
	}
}

// fieldOf finds the reading of a row, whose name may have our prefix. Labels are needed
// only if several readings have that name.
func fieldOf(item entry, word string, labels map[string]string) (canonical.Field, bool) {
	word = strings.TrimPrefix(word, canonical.Prefix)
	at := entry{item.Node, item.path + ".field", item.file}
	var known, choices []string
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if known = append(known, info.Name); info.Name != word {
			continue
		}
		if reflect.DeepEqual(labelsOf(f), labels) {
			if f == canonical.TemperatureWarning { // no source gives it
				at.reject("%s is not a reading of an exporter; set it under temperatures", info.Name)
			}
			return f, true
		}
		choices = append(choices, "{"+strings.NewReplacer("=", ": ", `"`, "", ",", ", ").Replace(info.Labels)+"}")
	}
	switch {
	case len(choices) == 1 && choices[0] == "{}":
		item.file.reject(item.path+".labels", "%s has none; remove them", word)
	case len(choices) > 0:
		at.reject("%s is several readings; give labels, one of %s", word, strings.Join(choices, " or "))
	case diag.Nearest(word, known) != "":
		at.reject("%q is not a reading of kpulse-proxy; did you mean %s?", word, diag.Nearest(word, known))
	default:
		at.reject("%q is not a reading of kpulse-proxy; write the name of one such as gpu_sm_active_ratio", word)
	}
	return 0, false
}

// labelsOf returns the labels that tell a field from others of its name.
func labelsOf(f canonical.Field) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(canonical.Fields[f].Labels, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			labels[name] = strings.Trim(value, `"`)
		}
	}
	return labels
}

func (o *Options) showDialect() any {
	all := []any{}
	for _, row := range o.Rows {
		pairs := []any{"names", row.Names, "field", canonical.Fields[row.Field].Name, "unit", string(row.Unit)}
		if labels := labelsOf(row.Field); len(labels) > 0 {
			pairs = append(pairs, "labels", labels)
		}
		all = append(all, mapping(pairs...))
	}
	return all
}

// readSources reads the sources, each with the rows of the table for one.
func (o *Options) readSources(v entry) {
	for _, item := range v.items("sources such as {source: http://node7:9400/metrics}") {
		if item.isNull() {
			item.reject("is empty; write a value, or remove the key")
		}
		one := Options{Config: o.Config}
		one.read(item, "sources[].")
		o.Sources = append(o.Sources, one.FlagSource)
	}
}

const wantHTTP = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"

// Errors of yaml.v3 and net/url show values, which may be passwords.
var (
	notFound   = diag.Pattern(`field (\S+) not found`)
	ofValue    = diag.Pattern("(?s)!!\\w+ `.*`")
	ofProxyURL = diag.Pattern(`(?s)parse ".*": `)
)

// readHTTP reads Prometheus' http_config. Its files are relative to the config file.
func readHTTP(v entry) *promconfig.HTTPClientConfig {
	body, err := yaml.Marshal(v.Node)
	if err != nil || v.isNull() {
		return nil
	}
	var c promconfig.HTTPClientConfig
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	err = decoder.Decode(&c)
	if _, wrongType := errors.AsType[*yaml.TypeError](err); wrongType {
		if key := notFound().FindStringSubmatch(err.Error()); key != nil {
			v.reject("%s is not a known key; see the documentation of Prometheus", key[1])
		} else {
			v.reject("a value where another form is expected; %s", wantHTTP)
		}
		return nil
	} else if err != nil {
		text := ofProxyURL().ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "no URL: ")
		v.reject("%s; %s", ofValue().ReplaceAllString(text, "a value"), wantHTTP)
		return nil
	}
	proxies := []promconfig.ProxyConfig{c.ProxyConfig}
	if c.OAuth2 != nil {
		proxies = append(proxies, c.OAuth2.ProxyConfig)
	}
	for _, p := range proxies {
		if u := p.ProxyURL.URL; u != nil && *u != (url.URL{}) && (u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)) {
			v.reject("proxy_url is not the URL of a proxy; write one such as http://proxy:3128, with http, https or socks5") // not shown: it may hold a password
		}
	}
	c.SetDirectory(v.file.beside("."))
	return &c
}

// showHTTP returns an http_config, nil for none. Prometheus masks its secrets; this masks the rest that
// may hold one.
func showHTTP(c *promconfig.HTTPClientConfig, directory string) any {
	if c == nil {
		return nil
	}
	shown := *c
	shown.SetDirectory(directory)
	if shown.BasicAuth != nil && shown.BasicAuth.Username != "" {
		shown.BasicAuth = new(*shown.BasicAuth)
		shown.BasicAuth.Username = Masked
	}
	if shown.OAuth2 != nil {
		shown.OAuth2 = new(*shown.OAuth2)
		shown.OAuth2.EndpointParams, shown.OAuth2.Claims = map[string]string{}, map[string]any{}
		for name := range c.OAuth2.EndpointParams {
			shown.OAuth2.EndpointParams[name] = Masked
		}
		for name := range c.OAuth2.Claims {
			shown.OAuth2.Claims[name] = Masked
		}
	}
	if shown.HTTPHeaders != nil {
		headers := map[string]promconfig.Header{}
		for name, header := range c.HTTPHeaders.Headers {
			header.Values = slices.Repeat([]string{Masked}, len(header.Values))
			headers[name] = header
		}
		shown.HTTPHeaders = &promconfig.Headers{Headers: headers}
	}
	var n yaml.Node
	if err := n.Encode(&shown); err != nil {
		return Masked // it has been read from YAML
	}
	maskURLs(&n)
	return &n
}

// maskURLs masks the credentials in the URLs of an http_config.
func maskURLs(n *yaml.Node) {
	for i, inner := range n.Content {
		if maskURLs(inner); i%2 == 1 && (n.Content[i-1].Value == "proxy_url" || n.Content[i-1].Value == "token_url") {
			inner.SetString(mask(inner.Value))
		}
	}
}

// mapping returns a mapping of keys and values in this order.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		key, value := new(yaml.Node), new(yaml.Node)
		key.SetString(pairs[i].(string))
		switch v := pairs[i+1].(type) {
		case *yaml.Node:
			value = v
		case string:
			value.SetString(v) // in quotes only if it would be something else
		default:
			if err := value.Encode(v); err != nil {
				panic(fmt.Sprint("a value of ", pairs[i], " has no form in YAML: ", err)) // they are numbers, words and lists of these
			}
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}

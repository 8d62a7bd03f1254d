// Grafana panels as functions. dashboard.libsonnet positions them. Every panel must state its unit, and what to
// do about what it shows.
local q = import 'query.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

local base(type, title, description, unit, targets) = {
  type: type,
  title: title,
  description: description,
  datasource: datasource,
  targets: [
    targets[i] { refId: std.char(65 + i), datasource: datasource }
    for i in std.range(0, std.length(targets) - 1)
  ],
  fieldConfig: {
    defaults: if unit == null then {} else { unit: unit },
    overrides: [],
  },
  options: {},
};

// least is the smallest upper end of a chart's axis by unit, so that zeros or millionths do not look like
// trouble.
local least = { percentunit: 0.1, s: 0.01 };

// leastWidths is the width in pixels below which a text column is not cut but the table scrolls sideways: what names a
// row stays readable.
local leastWidths = {
  Cluster: 70,
  Host: 90,
  Job: 90,
  Subject: 105,
  Namespace: 100,
  Pod: 180,
  Workload: 90,
  Kind: 100,
  Mostly: 170,
  Class: 170,
  Condition: 215,
  Switch: 115,
  Action: 130,
  'What to do': 150,
  'What happened': 400,
  Model: 190,
  Proxy: 120,
  Source: 225,
  Field: 240,
  Backend: 100,
  'Values are': 90,
  User: 80,
  Account: 80,
  'What is missing': 230,
  Driver: 110,
  'PCI address': 150,
  'Full UUID': 350,
};

// columns sets the format of text columns by displayed name. Columns without a width share the remaining space.
// Text columns have no unit: Grafana would print job 88049300 as "88049300%".
local columns = {
  Alert: { 'custom.width': 225 },  // fits the longest name
  GPU: { 'custom.width': 52 },
  Index: { 'custom.width': 60 },
  // The first group of a uuid tells boards apart; a click, or the page of the board, shows all of it.
  UUID: {
    'custom.width': 90,
    mappings: [{ type: 'regex', options: { pattern: '/^(?:GPU-)?([0-9a-fA-F]{8})-.*$/', result: { index: 0, text: '$1' } } }],
  },
  'MIG profile': { 'custom.width': 100 },
  State: { 'custom.width': 70 },
  Severity: { 'custom.width': 76 },
  XID: { 'custom.width': 52 },
  SXID: { 'custom.width': 70 },
} + { [name]: { 'custom.minWidth': leastWidths[name] } for name in std.objectFields(leastWidths) };

// isValue reports whether a column, by its name in the query, contains numbers.
local isValue(column) = std.startsWith(column, 'Value');

// override sets properties of a column or line by name.
local override(name, properties) = {
  matcher: { id: 'byName', options: name },
  properties: [{ id: id, value: properties[id] } for id in std.objectFields(properties)],
};

// room is the width of a number column in pixels: that of its name, or of a number with its unit such as 149 kWh.
local room(name) = std.max(88, 24 + 8 * std.length(name));

// capped reports whether queries limit the number of rows.
local capped(targets) = std.length([t for t in targets if std.length(std.findSubstr('k(%d,' % q.rows, t.expr)) > 0]) > 0;

// steps builds thresholds from [[value, color], ...]; the first value is null, for the lowest range.
local steps(list) = {
  mode: 'absolute',
  steps: [{ value: s[0], color: s[1] } for s in list],
};

{
  // query is a range query; instant() evaluates only at the end of the range.
  query(expr, legend='__auto'): { expr: expr, legendFormat: legend, range: true, instant: false },
  instant(expr, legend='__auto'): { expr: expr, legendFormat: legend, range: false, instant: true },
  rows(expr): { expr: expr, format: 'table', range: false, instant: true },
  // largest returns the queries of a stack of the 20 largest parts, and the rest in one.
  largest(series, by, legend): [self.query(q.highest(20, series, by), legend), self.query(q.rest(20, series, by), 'all others')],
  // idleFirst returns the queries of a stack by class with idle at the bottom, where its height can be read:
  // Grafana stacks in the order of the queries. `by` is a function of a matcher.
  idleFirst(by): [self.query(by('class="idle"'), '{{class}}'), self.query(by('class!="idle"'), '{{class}}')],

  // saturating says what real utilization work of each kind reaches that uses all it can.
  saturating:: 'No work reaches 100 %: on an H200 a large matrix product reaches 77 %, a copy 61 %, a kernel without tensor cores 44 %.',

  steps:: steps,

  // glossary adds what the proxy advises for each name of a table to the panel's description.
  glossary(table):: { description+: '\n\n' + std.join('\n', ['- `%s`: %s' % [name, table[name]] for name in std.objectFields(table)]) },

  stat(title, description, unit, targets):: base('stat', title, description, unit, targets) {
    options: {
      colorMode: 'value',
      graphMode: 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      percentChangeColorMode: 'standard',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      showPercentChange: false,
      textMode: 'auto',
      wideLayout: true,
    },
  },

  // floating is a chart whose axis fits its values; timeseries is a chart of non-negative values.
  floating(title, description, unit, targets):: base('timeseries', title, description, unit, targets) {
    fieldConfig+: { defaults+: { color: { mode: 'palette-classic' }, custom: {
      drawStyle: 'line',
      fillOpacity: 0,
      lineInterpolation: 'linear',
      lineWidth: 1,
      pointSize: 5,
      showPoints: 'never',
      // Gaps stay visible: lines do not span missing values.
      spanNulls: false,
      stacking: { group: 'A', mode: 'none' },
    } } },
    options: {
      // Without values: the last value of a line that has ended would stand there like those of now.
      legend: { calcs: [], displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  timeseries(title, description, unit, targets):: self.floating(title, description, unit, targets) {
    fieldConfig+: { defaults+: { min: 0, custom+: { axisSoftMax: if std.objectHas(least, unit) then least[unit] else 1 } } },
  },

  // stacked is a timeseries of parts of a whole.
  stacked(title, description, unit, targets):: self.timeseries(title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom+: { fillOpacity: 60, lineWidth: 0, stacking: { group: 'A', mode: 'normal' } } } },
  },

  // The unit of a table applies to its values, which `renamed` shows; text has none. A table with a row limit
  // says so.
  table(title, description, unit, targets):: base('table', title, description + (if capped(targets) then ' Shows the first %d.' % q.rows else ''), null, targets) {
    valueUnit:: unit,
    fieldConfig+: {
      defaults+: { custom: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: false, minWidth: 60 } }
                 // Grafana's own thresholds would make text without a color green.
                 + { color: { mode: 'thresholds' }, thresholds: steps([[null, 'text']]) },
      // The text of an empty table must not appear in empty cells of a table with rows.
      overrides+: [{ matcher: { id: 'byRegexp', options: '/.*/' }, properties: [{ id: 'noValue', value: '' }] }],
    },
    options: { cellHeight: 'sm', frameIndex: 0, showHeader: true },
  },

  barGauge(title, description, unit, targets):: base('bargauge', title, description, unit, targets) {
    options: {
      displayMode: 'basic',
      legend: { calcs: [], displayMode: 'list', placement: 'bottom', showLegend: false },
      maxVizHeight: 300,
      minVizHeight: 16,
      minVizWidth: 8,
      namePlacement: 'auto',
      orientation: 'horizontal',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      showUnfilled: true,
      sizing: 'auto',
      valueMode: 'color',
    },
  },

  stateTimeline(title, description, unit, targets):: base('state-timeline', title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom: { fillOpacity: 80, lineWidth: 0 } } },
    options: {
      alignValue: 'left',
      legend: { calcs: [], displayMode: 'list', placement: 'bottom', showLegend: true },
      mergeValues: true,
      rowHeight: 0.9,
      showValue: 'auto',
      tooltip: { mode: 'single', sort: 'none' },
    },
  },

  text(title, content):: {
    type: 'text',
    title: title,
    options: { mode: 'markdown', content: content },
  },

  // Additions to any panel, appended with +.
  thresholds(list):: { fieldConfig+: { defaults+: { color: { mode: 'thresholds' }, thresholds: steps(list) } } },
  // range fixes the ends of the scale; null leaves an end to the data.
  range(min, max):: { fieldConfig+: { defaults+: { min: min, [if max != null then 'max']: max } } },
  // noValue is the text of a panel without data, in the color of its lowest threshold.
  noValue(text):: { fieldConfig+: { defaults+: { noValue: text } } },
  // unlisted leaves out the legend of a chart of many lines; the tooltip names them.
  unlisted:: { options+: { legend+: { showLegend: false } } },
  decimals(n):: { fieldConfig+: { defaults+: { decimals: n } } },
  // valueMappings shows values as words: { '0': { text: 'OK', color: 'green' } }.
  valueMappings(map):: [{ type: 'value', options: {
    [key]: { index: 0 } + map[key]
    for key in std.objectFields(map)
  } }],
  mappings(map):: { fieldConfig+: { defaults+: { mappings: $.valueMappings(map) } } },
  links(list):: { fieldConfig+: { defaults+: { links: list } } },
  // column sets properties of one column of a table, by its name.
  column(name, properties):: { fieldConfig+: { overrides+: [override(name, properties)] } },
  colored(name, color):: self.column(name, { color: { mode: 'fixed', fixedColor: color } }),
  // lines sets the colors of lines by the beginnings of their names: [['SM', 'blue'], ...]. The MIG profile or
  // instance follows.
  lines(list):: { fieldConfig+: { overrides+: [
    {
      matcher: { id: 'byRegexp', options: '/^%s( .*)?$/' % line[0] },
      properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: line[1] } }],
    }
    for line in list
  ] } },
  // renamed shows the columns of a table that `names` lists, in that order and under those names: [['uuid',
  // 'GPU'], ['Value #A', 'Real utilization'], ...]. Value columns have the unit of the table, unless a later
  // `column` changes it.
  renamed(names):: {
    local unit = self.valueUnit,
    fieldConfig+: { overrides+: [
      override(n[1], if isValue(n[0]) then { unit: unit, 'custom.width': room(n[1]) } else columns[n[1]])
      for n in names
      if isValue(n[0]) || std.objectHas(columns, n[1])
    ] },
    transformations+: [
      { id: 'filterFieldsByName', options: { include: { names: [n[0] for n in names] } } },
      { id: 'organize', options: {
        excludeByName: {},
        includeByName: {},
        indexByName: { [names[i][0]]: i for i in std.range(0, std.length(names) - 1) },
        renameByName: { [n[0]]: n[1] for n in names },
      } },
    ],
  },
  // joined merges rows of several queries that have the same labels into one row.
  joined:: { transformations+: [{ id: 'merge', options: {} }] },
  // sorted orders a table by a column, by its name in the query, the worst first. A second one after it orders
  // by another column and keeps the order of equal rows.
  sorted(name, desc=true):: { transformations+: [{ id: 'sortBy', options: { fields: {}, sort: [{ field: name, desc: desc }] } }] },
}

// Panels of Grafana as functions. A panel has no place: dashboard.libsonnet gives it
// one. Every panel must say its unit and what to do about what it shows.
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

// least is where the axis of a chart of a unit ends at the least, so that one of zeros and
// one of a millionth do not look like trouble.
local least = { percentunit: 0.1, s: 0.01 };

// hue is how the lines of a chart get their colors. The palette has a red as its fifth, and
// red is what is broken; so lines of which there may be that many are shades of one color.
local hue(targets) =
  local open(legend) = std.length(std.findSubstr('{{', legend)) > 0 || legend == '__auto';
  if std.length(targets) > 4 || std.length([t for t in targets if open(t.legendFormat)]) > 0
  then { mode: 'shades', fixedColor: 'blue' }
  else { mode: 'palette-classic' };

// columns are what columns of tables that hold words look like, by the name that is shown.
// Those that have no width share what is left. A number's unit is never one of theirs:
// Grafana would write job 88049300 as "88049300%".
local columns = {
  Alert: { 'custom.width': 235 },  // fits the longest name
  GPU: { 'custom.width': 52 },
  Index: { 'custom.width': 60 },
  // The first group of a uuid tells boards apart; a click, and the board's own page, have all of it.
  UUID: {
    'custom.width': 90,
    mappings: [{ type: 'regex', options: { pattern: '/^(?:GPU-)?([0-9a-fA-F]{8})-.*$/', result: { index: 0, text: '$1' } } }],
  },
  'MIG profile': { 'custom.width': 100 },
  State: { 'custom.width': 70 },
  XID: { 'custom.width': 52 },
};

// isValue says whether a column, as the query calls it, is one of numbers.
local isValue(column) = std.startsWith(column, 'Value');

// override sets properties of a column, or of a line, by its name.
local override(name, properties) = {
  matcher: { id: 'byName', options: name },
  properties: [{ id: id, value: properties[id] } for id in std.objectFields(properties)],
};

// room is how wide a column of numbers is, in pixels: as wide as its name.
local room(name) = std.max(72, 24 + 8 * std.length(name));

// capped says whether queries ask for so many rows at most.
local capped(targets) = std.length([t for t in targets if std.length(std.findSubstr('k(%d,' % q.rows, t.expr)) > 0]) > 0;

// steps makes thresholds of [[value, color], ...]; the first value is null, for "from
// the bottom".
local steps(list) = {
  mode: 'absolute',
  steps: [{ value: s[0], color: s[1] } for s in list],
};

{
  // query is a range query; instant() makes one that looks at the end of the range only.
  query(expr, legend='__auto'): { expr: expr, legendFormat: legend, range: true, instant: false },
  instant(expr, legend='__auto'): { expr: expr, legendFormat: legend, range: false, instant: true },
  rows(expr): { expr: expr, format: 'table', range: false, instant: true },
  // largest is the queries of a stack of its 20 largest parts, and of all others together.
  largest(series, by, legend): [self.query(q.highest(20, series, by), legend), self.query(q.rest(20, series, by), 'all others')],
  // idleFirst is the queries of a stack by class in which idle lies at the bottom, where its
  // height can be read: Grafana stacks in the order of the queries. `by` is a function of a matcher.
  idleFirst(by): [self.query(by('class="idle"'), '{{class}}'), self.query(by('class!="idle"'), '{{class}}')],

  steps:: steps,

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

  // floating is a chart whose axis is that of its values; timeseries is one of what can be
  // 0 and not less.
  floating(title, description, unit, targets):: base('timeseries', title, description, unit, targets) {
    fieldConfig+: { defaults+: { color: hue(targets), custom: {
      drawStyle: 'line',
      fillOpacity: 0,
      lineInterpolation: 'linear',
      lineWidth: 1,
      pointSize: 5,
      showPoints: 'never',
      // A gap is a gap: nothing is drawn where nothing was read.
      spanNulls: false,
      stacking: { group: 'A', mode: 'none' },
    } } },
    options: {
      legend: { calcs: ['lastNotNull'], displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  timeseries(title, description, unit, targets):: self.floating(title, description, unit, targets) {
    fieldConfig+: { defaults+: { min: 0, custom+: { axisSoftMax: if std.objectHas(least, unit) then least[unit] else 1 } } },
  },

  // stacked is timeseries of parts of a whole.
  stacked(title, description, unit, targets):: self.timeseries(title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom+: { fillOpacity: 60, lineWidth: 0, stacking: { group: 'A', mode: 'normal' } } } },
  },

  // The unit of a table is that of its values, which `renamed` shows; words have none. One that
  // has not all rows says so.
  table(title, description, unit, targets):: base('table', title, description + (if capped(targets) then ' Shows the first %d.' % q.rows else ''), null, targets) {
    valueUnit:: unit,
    fieldConfig+: {
      defaults+: { custom: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: false, minWidth: 60 } },
      // What a table says when it has no rows must not stand in the empty cells of those that it has.
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

  // Additions to any panel, to be put behind it with +.
  thresholds(list):: { fieldConfig+: { defaults+: { color: { mode: 'thresholds' }, thresholds: steps(list) } } },
  // range fixes the ends of the scale; null leaves an end to the data.
  range(min, max):: { fieldConfig+: { defaults+: { min: min, [if max != null then 'max']: max } } },
  // noValue is what a panel says where there is nothing; in the color of its lowest threshold.
  noValue(text):: { fieldConfig+: { defaults+: { noValue: text } } },
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
  // lines gives lines their colors by how their names begin: [['SM', 'blue'], ...]. What
  // follows is the MIG profile or instance.
  lines(list):: { fieldConfig+: { overrides+: [
    {
      matcher: { id: 'byRegexp', options: '/^%s( .*)?$/' % line[0] },
      properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: line[1] } }],
    }
    for line in list
  ] } },
  // renamed shows the columns of a table that `names` lists, in its order, under its names:
  // [['uuid', 'GPU'], ['Value #A', 'Real utilization'], ...]. Columns of values get the unit
  // of the table; `column` behind it may say otherwise.
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
  // joined makes one row of a table of what several queries say of the same labels.
  joined:: { transformations+: [{ id: 'merge', options: {} }] },
  // sorted orders a table by a column as the query calls it, the worst first. A second one
  // behind it orders by another and leaves equals as they are.
  sorted(name, desc=true):: { transformations+: [{ id: 'sortBy', options: { fields: {}, sort: [{ field: name, desc: desc }] } }] },
}

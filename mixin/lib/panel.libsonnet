// Panels of Grafana as functions. A panel has no place: dashboard.libsonnet gives it
// one. Every panel must say its unit and what to do about what it shows.
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
    defaults: { unit: unit },
    overrides: [],
  },
  options: {},
};

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

  timeseries(title, description, unit, targets):: base('timeseries', title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom: {
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
      legend: { calcs: ['lastNotNull', 'max'], displayMode: 'table', placement: 'right', showLegend: true, sortBy: 'Last *', sortDesc: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  // stacked is timeseries of parts of a whole.
  stacked(title, description, unit, targets):: self.timeseries(title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom+: { fillOpacity: 60, lineWidth: 0, stacking: { group: 'A', mode: 'normal' } } } },
  },

  table(title, description, unit, targets):: base('table', title, description, unit, targets) {
    fieldConfig+: { defaults+: { custom: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: true } } },
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
  decimals(n):: { fieldConfig+: { defaults+: { decimals: n } } },
  // valueMappings shows values as words: { '0': { text: 'OK', color: 'green' } }.
  valueMappings(map):: [{ type: 'value', options: {
    [key]: { index: 0 } + map[key]
    for key in std.objectFields(map)
  } }],
  mappings(map):: { fieldConfig+: { defaults+: { mappings: $.valueMappings(map) } } },
  links(list):: { fieldConfig+: { defaults+: { links: list } } },
  // column sets properties of one column of a table, by its name.
  column(name, properties):: { fieldConfig+: { overrides+: [{
    matcher: { id: 'byName', options: name },
    properties: [{ id: id, value: properties[id] } for id in std.objectFields(properties)],
  }] } },
  colored(name, color):: self.column(name, { color: { mode: 'fixed', fixedColor: color } }),
  // renamed shows the columns of a table that `names` lists, in its order, under its names:
  // [['uuid', 'GPU'], ['Value #A', 'Real utilization'], ...].
  renamed(names):: { transformations+: [
    { id: 'filterFieldsByName', options: { include: { names: [n[0] for n in names] } } },
    { id: 'organize', options: {
      excludeByName: {},
      includeByName: {},
      indexByName: { [names[i][0]]: i for i in std.range(0, std.length(names) - 1) },
      renameByName: { [n[0]]: n[1] for n in names },
    } },
  ] },
  // joined makes one row of a table of what several queries say of the same labels.
  joined:: { transformations+: [{ id: 'merge', options: {} }] },
  // sorted orders a table by a column as the query calls it, the worst first. A second one
  // behind it orders by another and leaves equals as they are.
  sorted(name, desc=true):: { transformations+: [{ id: 'sortBy', options: { fields: {}, sort: [{ field: name, desc: desc }] } }] },
}

// Turns a panel and the results of its queries into Grafana's data frames, with Grafana's own code.
const grafana = require('@grafana/data');

// The properties of fields and when they apply, as Grafana's core registers them
// (public/app/core/components/OptionsUI/registry.tsx, which is not published).
const always = () => true;
const ofNumbers = (field) => field.type === grafana.FieldType.number;
const standard = [
  ['displayName', grafana.displayNameOverrideProcessor, always],
  ['unit', grafana.unitOverrideProcessor, always],
  ['min', grafana.numberOverrideProcessor, ofNumbers],
  ['max', grafana.numberOverrideProcessor, ofNumbers],
  ['decimals', grafana.numberOverrideProcessor, ofNumbers],
  ['noValue', grafana.stringOverrideProcessor, always],
  ['links', grafana.dataLinksOverrideProcessor, always],
  ['mappings', grafana.valueMappingsOverrideProcessor, (field) => field.type !== grafana.FieldType.time],
  ['thresholds', grafana.thresholdsOverrideProcessor, always],
  ['color', grafana.identityOverrideProcessor, always],
];
// registry returns these, and the properties of its own that a panel sets, which stand under `custom`.
const registry = ({ defaults, overrides }) => new grafana.FieldConfigOptionsRegistry(() => {
  const item = (id, path, process, shouldApply) => ({ id, path, name: id, process, shouldApply, isCustom: id !== path, override: () => null, editor: () => null });
  const own = [...Object.keys(defaults.custom ?? {}), ...overrides.flatMap((o) => o.properties).filter((p) => p.id.startsWith('custom.')).map((p) => p.id.slice(7))];
  return [
    ...standard.map(([id, process, shouldApply]) => item(id, id, process, shouldApply)),
    ...[...new Set(own)].map((path) => item(`custom.${path}`, path, grafana.identityOverrideProcessor, always)),
  ];
});
const transformers = new Map(Object.values(grafana.standardTransformers).map((t) => [t.id, t])); // some are listed twice
grafana.standardTransformersRegistry.setInit(() =>
  [...transformers.values()].map((t) => ({ id: t.id, name: t.name, transformation: async () => t, description: '', editor: () => null }))
);

// frames turns results into data frames as the Prometheus data source does. step is that of range queries, in seconds.
function frames({ panel, results, step }) {
  const { time, string, number } = grafana.FieldType;
  return results.flatMap(({ refId, series }) => {
    const target = panel.targets.find((t) => t.refId === refId);
    if (target.format === 'table') {
      const labels = [...new Set(series.flatMap((s) => Object.keys(s.metric)))].sort();
      const rows = series.flatMap((s) => s.values.map(([at, value]) => [at * 1000, s.metric, Number(value)]));
      return [grafana.toDataFrame({
        refId,
        fields: [
          { name: 'Time', type: time, config: {}, values: rows.map((r) => r[0]) },
          ...labels.map((l) => ({ name: l, type: string, config: { filterable: true }, values: rows.map((r) => r[1][l] ?? '') })),
          { name: results.length > 1 ? `Value #${refId}` : 'Value', type: number, config: {}, values: rows.map((r) => r[2]) },
        ],
      })];
    }
    return series.map((s) => grafana.toDataFrame({
      refId,
      fields: [
        { name: 'Time', type: time, config: { interval: step && step * 1000 }, values: s.values.map((v) => v[0] * 1000) },
        { name: 'Value', type: number, labels: s.metric, config: { displayNameFromDS: legend(target.legendFormat, s.metric) }, values: s.values.map((v) => Number(v[1])) },
      ],
    }));
  });
}

// legend returns the name of a series; without a format, its labels.
function legend(format, metric) {
  if (format && format !== '__auto') {
    return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => metric[label] ?? '');
  }
  const { __name__: name = '', ...labels } = metric;
  const list = Object.entries(labels).map(([k, v]) => `${k}="${v}"`);
  return list.length ? `${name}{${list.join(', ')}}` : name || 'Value';
}

function transformed(panel, data) {
  return new Promise((resolve, reject) => {
    const context = { interpolate: (v) => v };
    grafana.transformDataFrame(panel.transformations ?? [], data, context).subscribe({ next: resolve, error: reject });
  });
}

// ofRow replaces the macros of a row in a link, as @grafana/scenes does, but not those of the page. A missing column is
// empty.
grafana.locationUtil.initialize({ config: { appSubUrl: '' }, getVariablesUrlParams: () => ({}), getTimeRangeForUrl: () => ({}) });
function ofRow(text, scope) {
  const { frame, field, rowIndex } = scope?.__dataContext?.value ?? {};
  if (rowIndex === undefined) {
    return text;
  }
  return text.replace(/\$\{__(?:value\.raw|data\.fields\.(\w+))\}/g, (_, column) =>
    encodeURIComponent(column ? grafana.getFieldDisplayValuesProxy({ frame, rowIndex })[column] ?? '' : field.values[rowIndex]));
}

// usual is what Grafana adds to panels that set no thresholds.
const usual = { thresholds: { mode: 'absolute', steps: [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }] } };

// fields returns the data frames of a panel, whose fields know how to show their values, and its configuration of them.
async function fields(one, theme) {
  const { panel } = one;
  const fieldConfig = { defaults: { ...usual, ...structuredClone(panel.fieldConfig?.defaults) }, overrides: structuredClone(panel.fieldConfig?.overrides ?? []) };
  const data = grafana.applyFieldOverrides({
    data: await transformed(panel, frames(one)),
    fieldConfig,
    fieldConfigRegistry: registry(fieldConfig),
    replaceVariables: ofRow,
    theme,
    timeZone: 'utc',
  });
  return { fieldConfig, data };
}

module.exports = { fields };

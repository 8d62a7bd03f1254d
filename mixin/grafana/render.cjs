// Renders panels with Grafana's own code, without a browser: reads a list of
// { panel, results } from standard input, and writes what each shows to standard output.
// `panel` is a panel of a dashboard, `results` the results of its queries in the form of
// Prometheus' API: [{ refId, series: [{ metric, values: [[seconds, "value"], ...] }] }].

// What the packages need of a browser.
globalThis.navigator ??= { language: 'en-US', languages: ['en-US'] };
const grafana = require('@grafana/data');
globalThis.window ??= globalThis; // after the import: a package that finds a window while it loads needs a document

const theme = grafana.createTheme({ colors: { mode: 'dark' } });

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
const registry = new grafana.FieldConfigOptionsRegistry(() =>
  standard.map(([id, process, shouldApply]) => ({ id, path: id, name: id, process, shouldApply, override: () => null, editor: () => null }))
);
const transformers = new Map(Object.values(grafana.standardTransformers).map((t) => [t.id, t])); // some are listed twice
grafana.standardTransformersRegistry.setInit(() =>
  [...transformers.values()].map((t) => ({ id: t.id, name: t.name, transformation: async () => t, description: '', editor: () => null }))
);

// frames turns results into data frames as the Prometheus data source does.
function frames(panel, results) {
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
        { name: 'Time', type: time, config: {}, values: s.values.map((v) => v[0] * 1000) },
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

// cell returns the text and color of a value.
const cell = (display) => ({ text: grafana.formattedValueToString(display), color: display.color ?? '' });

async function show({ panel, results }) {
  const fieldConfig = { defaults: structuredClone(panel.fieldConfig?.defaults ?? {}), overrides: structuredClone(panel.fieldConfig?.overrides ?? []) };
  const data = grafana.applyFieldOverrides({
    data: await transformed(panel, frames(panel, results)),
    fieldConfig,
    fieldConfigRegistry: registry,
    replaceVariables: ofRow,
    theme,
    timeZone: 'utc',
  });
  if (panel.options?.reduceOptions) {
    return {
      values: grafana
        .getFieldDisplayValues({ fieldConfig, reduceOptions: panel.options.reduceOptions, data, replaceVariables: (v) => v, theme, timeZone: 'utc' })
        .map((v) => ({ name: v.display.title ?? '', ...cell(v.display) })),
    };
  }
  return {
    fields: data.flatMap((frame) => frame.fields).filter((f) => f.type !== grafana.FieldType.time).map((field) => ({
      column: field.name,
      name: grafana.getFieldDisplayName(field, data.find((frame) => frame.fields.includes(field)), data),
      string: field.type === grafana.FieldType.string,
      color: grafana.getFieldColorModeForField(field).getCalculator(field, theme)(0, 0),
      links: field.values.map((_, valueRowIndex) => field.getLinks({ valueRowIndex }).map((l) => l.href)),
      raw: field.values.map((v) => (v === null || v === undefined ? '' : String(v))),
      cells: field.values.map((v) => cell(field.display(v))),
    })),
  };
}

async function main() {
  let input = '';
  for await (const piece of process.stdin) {
    input += piece;
  }
  const { colors, panels } = JSON.parse(input);
  const shown = [];
  for (const one of panels) {
    try {
      shown.push(await show(one));
    } catch (err) {
      shown.push({ error: String(err.stack ?? err) });
    }
  }
  process.stdout.write(JSON.stringify({ colors: Object.fromEntries(colors.map((c) => [c, theme.visualization.getColorByName(c)])), panels: shown }));
}

main();

// Renders panels with Grafana's own code, without a browser: reads a list of
// { panel, results } from standard input, and writes what each shows to standard output.
// `panel` is a panel of a dashboard, `results` the results of its queries in the form of
// Prometheus' API: [{ refId, series: [{ metric, values: [[seconds, "value"], ...] }] }].

// What the packages need of a browser.
globalThis.navigator ??= { language: 'en-US', languages: ['en-US'] };
const grafana = require('@grafana/data');
globalThis.window ??= globalThis; // after the import: a package that finds a window while it loads needs a document

const { fields } = require('./frames.cjs');
const theme = grafana.createTheme({ colors: { mode: 'dark' } });

// cell returns the text and color of a value.
const cell = (display) => ({ text: grafana.formattedValueToString(display), color: display.color ?? '' });

async function show(one) {
  const { panel } = one;
  const { fieldConfig, data } = await fields(one, theme);
  if (panel.options?.reduceOptions) {
    return {
      values: grafana
        .getFieldDisplayValues({ fieldConfig, reduceOptions: panel.options.reduceOptions, data, replaceVariables: (v) => v, theme, timeZone: 'utc' })
        .map((v) => ({ name: v.display.title ?? '', ...cell(v.display), links: v.getLinks ? v.getLinks({}).map((l) => l.href) : [] })),
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

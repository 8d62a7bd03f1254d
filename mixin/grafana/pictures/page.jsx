// Draws a dashboard in a browser, with the components of Grafana's Apache-licensed packages: window.page is
// { title, variables: [{ label, value }], from, to, panels: [{ panel, results, step }] }, for panels and results
// see ../render.cjs; the address ends in #dark or #light. It writes to the console what does not fit, such
// as "cut: PANEL: TEXT", and at the end "drawn: " and the number of panels.
//
// How Grafana's panels use the components is in its core, which is not published as a package: here are the shortest
// replacements that set the same options. Panel and cell texts, widths, colors, legends and axes are the components' own.
// The head of the page, rows and state timelines are plain boxes; annotations are not drawn.
import React from 'react';
import { createRoot } from 'react-dom/client';
import {
  cacheFieldDisplayNames, colorManipulator, createTheme, dateTime, FieldType, formattedValueToString, getDisplayValueAlignmentFactors, getFieldDisplayName,
  getFieldDisplayValues, EventBusSrv, renderMarkdown, ThemeContext,
} from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, PanelContextProvider, TimeSeries, VizLayout, VizLegend, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { initPluginTranslations } from '@grafana/i18n';
import { fields } from '../frames.cjs';
import 'uplot/dist/uPlot.min.css';
import '@grafana/react-data-grid/lib/styles.css';

const { page } = window;
const theme = createTheme({ colors: { mode: window.location.hash.slice(1) || 'dark' } });
const range = { from: dateTime(page.from), to: dateTime(page.to), raw: { from: dateTime(page.from), to: dateTime(page.to) } };

// Grafana's grid: 24 columns, lines of 30 pixels, gaps of 8.
const gap = 8;
const sides = 16;
const head = 64;
const column = (window.innerWidth - 2 * sides + gap) / 24;
const box = ({ x, y, w, h }) => ({ position: 'absolute', left: x * column, top: y * 38, width: w * column - gap, height: h * 38 - gap });

// values draws each reduced value of a panel.
function Values({ panel, fieldConfig, data, width, height, spacing, children }) {
  const { options } = panel;
  const getValues = () => getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, data, replaceVariables: (v) => v, theme, timeZone: 'utc' });
  return (
    <VizRepeater
      getValues={getValues} getAlignmentFactors={getDisplayValueAlignmentFactors} renderValue={children} source={data} renderCounter={0}
      width={width} height={height} orientation={options.orientation} itemSpacing={spacing} autoGrid={panel.type === 'stat'}
      minVizWidth={options.minVizWidth} minVizHeight={options.minVizHeight} maxVizHeight={options.maxVizHeight}
    />
  );
}

const Stat = (props) => (
  <Values {...props} spacing={3}>
    {({ value, alignmentFactors, width, height, count }) => (
      <BigValue
        value={value.display} count={count} width={width} height={height} alignmentFactors={alignmentFactors} theme={theme} hasLinks={value.hasLinks}
        colorMode={props.panel.options.colorMode} graphMode="none" justifyMode={props.panel.options.justifyMode}
        textMode={props.panel.options.textMode} wideLayout={props.panel.options.wideLayout}
      />
    )}
  </Values>
);

const Bars = (props) => (
  <Values {...props} spacing={8}>
    {({ value, alignmentFactors, orientation, width, height, count }) => (
      <BarGauge
        value={value.display} field={value.field} text={props.panel.options.text} display={value.view?.getFieldDisplayProcessor(value.colIndex)} width={width} height={height} orientation={orientation}
        alignmentFactors={count > 1 ? alignmentFactors : undefined} theme={theme} itemSpacing={8} lcdCellWidth={12} displayMode={props.panel.options.displayMode}
        showUnfilled={props.panel.options.showUnfilled} valueDisplayMode={props.panel.options.valueMode} namePlacement={props.panel.options.namePlacement}
      />
    )}
  </Values>
);

const Chart = ({ panel, data, width, height }) => (
  <TimeSeries frames={data} structureRev={1} timeRange={range} timeZone="utc" width={width} height={height} legend={panel.options.legend} options={panel.options} />
);

const Table = ({ panel, fieldConfig, data, width, height }) => (
  <TableNG
    data={data[0]} width={width} height={height} noHeader={!panel.options.showHeader} cellHeight={panel.options.cellHeight} noValue={fieldConfig.defaults.noValue}
    fieldConfig={fieldConfig} structureRev={1} timeRange={range} enableVirtualization showTypeIcons={false} getActions={() => []}
  />
);

// StateTimeline stands in for Grafana's: a row of boxes for each series.
function StateTimeline({ panel, data, width, height }) {
  const rows = data.flatMap((frame) => frame.fields.filter((f) => f.type !== FieldType.time).map((field) => ({ name: getFieldDisplayName(field, frame, data), spans: spans(frame, field) })));
  const states = new Map(rows.flatMap((row) => row.spans).map((s) => [s.text, s.color]));
  const items = [...states].map(([label, color]) => ({ label, color, yAxis: 1 }));
  const legend = panel.options.legend.showLegend && (
    <VizLayout.Legend placement={panel.options.legend.placement}><VizLegend placement={panel.options.legend.placement} items={items} displayMode="list" /></VizLayout.Legend>
  );
  const at = (time) => `${(100 * (time - page.from)) / (page.to - page.from)}%`;
  const font = { fontSize: theme.typography.bodySmall.fontSize, whiteSpace: 'nowrap', overflow: 'hidden' };
  return (
    <VizLayout width={width} height={height} legend={legend || null}>
      {(w, h) => (
        <div style={{ width: w, height: h, display: 'grid', gridTemplateColumns: 'fit-content(30%) 1fr', gridTemplateRows: `repeat(${rows.length}, minmax(0, 1fr)) 18px`, columnGap: gap, alignItems: 'center' }}>
          {rows.map((row, i) => (
            <React.Fragment key={i}>
              <div style={{ ...font, gridColumn: 1, textAlign: 'right', textOverflow: 'ellipsis' }}>{row.name}</div>
              <div style={{ position: 'relative', height: `${100 * panel.options.rowHeight}%` }}>
                {row.spans.map((s, j) => (
                  <div key={j} style={{ ...font, position: 'absolute', left: at(s.from), width: `calc(${at(s.to)} - ${at(s.from)})`, height: '100%', padding: '0 4px', display: 'flex', alignItems: 'center', color: theme.colors.getContrastText(s.color),
                    background: filled(s.color, panel.fieldConfig.defaults.custom.fillOpacity) }}>{s.text}</div>
                ))}
              </div>
            </React.Fragment>
          ))}
          <div style={{ ...font, gridColumn: 2, display: 'flex', justifyContent: 'space-between' }}>
            {[0, 0.25, 0.5, 0.75, 1].map((part) => <span key={part}>{clock(page.from + part * (page.to - page.from))}</span>)}
          </div>
        </div>
      )}
    </VizLayout>
  );
}

// filled keeps the opacity of #rrggbbaa; `transparent` becomes black or white, as in Grafana.
const filled = (color, percent) => (/^#.{8}$/.test(color) ? color : colorManipulator.alpha(color, percent / 100));

const clock = (at) => dateTime(at).utc().format('HH:mm');

// spans returns the times during which a field has the same text.
function spans(frame, field) {
  const times = frame.fields.find((f) => f.type === FieldType.time).values;
  const list = [];
  field.values.forEach((value, i) => {
    if (value === null || Number.isNaN(value)) {
      return;
    }
    const display = field.display(value);
    const text = formattedValueToString(display);
    const to = times[i] + frame.fields[0].config.interval;
    const last = list.at(-1);
    if (last?.text === text && last.to >= times[i]) {
      last.to = to;
    } else {
      list.push({ text, color: display.color, from: times[i], to });
    }
  });
  return list.map((s) => ({ ...s, from: Math.max(s.from, page.from), to: Math.min(s.to, page.to) })).filter((s) => s.from < s.to);
}

const kinds = { stat: Stat, bargauge: Bars, timeseries: Chart, table: Table, 'state-timeline': StateTimeline };

function Panel({ panel, fieldConfig, data }) {
  const { width, height, ...place } = box(panel.gridPos);
  if (panel.type === 'row') {
    return <div style={{ ...place, width, height, lineHeight: '30px', fontSize: theme.typography.h5.fontSize, fontWeight: theme.typography.fontWeightMedium }}>⌄ {panel.title}</div>;
  }
  const Kind = kinds[panel.type];
  const empty = !panel.options.reduceOptions && !data.some((frame) => frame.length > 0);
  return (
    <div className="panel" data-title={panel.title} style={{ ...place, width, height }}>
      <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
        {(w, h) => panel.type === 'text' ? <div className="markdown-html" dangerouslySetInnerHTML={{ __html: renderMarkdown(panel.options.content) }} />
          : empty ? <div style={{ width: w, height: h, display: 'grid', placeItems: 'center', color: theme.colors.text.secondary, fontSize: theme.typography.h4.fontSize }}>{fieldConfig.defaults.noValue ?? 'No data'}</div>
            : <Kind panel={panel} fieldConfig={fieldConfig} data={data} width={w} height={h} />}
      </PanelChrome>
    </div>
  );
}

const Page = ({ panels }) => (
  <ThemeContext.Provider value={theme}>
    <GlobalStyles isExtensionSidebarOpen={false} />
    <PanelContextProvider value={{ eventBus: new EventBusSrv(), eventsScope: 'page' }}>
      <div style={{ padding: `0 ${sides}px`, background: theme.colors.background.canvas, color: theme.colors.text.primary, minHeight: '100vh' }}>
        <div style={{ height: head, display: 'flex', alignItems: 'center', gap: sides, whiteSpace: 'nowrap', overflow: 'hidden' }}>
          <span style={theme.typography.h3}>{page.title}</span>
          {page.variables.map((v) => <span key={v.label}><span style={{ color: theme.colors.text.secondary }}>{v.label}</span> {v.value}</span>)}
          <span style={{ marginLeft: 'auto' }}>{clock(page.from)} to {clock(page.to)}</span>
        </div>
        <div style={{ position: 'relative' }}>{panels.map((one) => <Panel key={one.panel.id} {...one} />)}</div>
      </div>
    </PanelContextProvider>
  </ThemeContext.Provider>
);

// cut writes what does not fit to the console: texts that end outside of what encloses them, of a table its columns, and
// columns that end outside of the table.
function cut() {
  const found = new Set();
  for (const panel of document.querySelectorAll('.panel')) {
    const texts = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const drawn = document.createRange();
      drawn.selectNodeContents(text);
      const { right } = drawn.getBoundingClientRect();
      const cell = text.parentElement.closest('[aria-colindex]');
      const header = cell && panel.querySelector(`[role=columnheader][aria-colindex="${cell.ariaColIndex}"]`);
      for (let around = text.parentElement; around !== panel; around = around.parentElement) {
        if (getComputedStyle(around).overflowX !== 'visible' && right > around.getBoundingClientRect().right + 1) {
          const what = cell && !cell.contains(around) ? 'to scroll to' : 'cut';
          found.add(`${what}: ${panel.dataset.title}: ${header ? `column ${header.textContent}` : text.data}`);
          break;
        }
      }
    }
  }
  found.forEach((text) => console.log(text));
  console.log(`drawn: ${document.querySelectorAll('.panel').length}`);
}

async function drawable({ panel, results, step }) {
  if (!results) {
    return { panel }; // a row or a text
  }
  const shown = await fields({ panel, results, step }, theme);
  cacheFieldDisplayNames(shown.data);
  return { panel, ...shown };
}

async function main() {
  await initPluginTranslations('grafana');
  const panels = await Promise.all(page.panels.map(drawable));
  createRoot(document.body).render(<Page panels={panels} />);
  await document.fonts.ready;
  setTimeout(cut, 1000);
}

main();

// Adds to a dashboard what Grafana's export for sharing adds, which grafana.com asks for: what it needs, but no inputs,
// since its variable chooses the data source. Only the files of dashboards_out have it; provisioning ignores it.
local names = {
  bargauge: 'Bar gauge',
  stat: 'Stat',
  'state-timeline': 'State timeline',
  table: 'Table',
  timeseries: 'Time series',
};

function(dashboard) dashboard {
  __inputs: [],
  __elements: {},
  __requires: [
    { type: 'grafana', id: 'grafana', name: 'Grafana', version: '11.0.0' },
    { type: 'datasource', id: 'prometheus', name: 'Prometheus', version: '1.0.0' },
  ] + [
    { type: 'panel', id: id, name: names[id], version: '' }
    for id in std.set([panel.type for panel in dashboard.panels if panel.type != 'row'])
  ],
}

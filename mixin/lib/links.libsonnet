// Links between the dashboards.
local changes = import 'changes.libsonnet';
local p = import 'panel.libsonnet';

{
  local base(c, file) = '%s/d/%s?' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs[file]],
  // to passes on the variables and the time range of the current page.
  to(c, file, title):: { title: title, url: base(c, file) + '${__all_variables}&${__url_time_range}', targetBlank: false },

  // Targets of table cells: column, page, and the variable that takes the value of the cell.
  local pages = [
    { column: 'Host', file: 'kpulse-node.json', variable: 'hostname', title: 'Open this host' },
    { column: 'UUID', file: 'kpulse-gpu.json', variable: 'gpu', title: 'Open this GPU' },
    { column: 'Job', file: 'kpulse-job.json', variable: 'job', title: 'Open this job' },
    // A workload is named by three columns.
    { column: 'Workload', file: 'kpulse-job.json', variable: 'job', title: 'Open this workload', value: '${__data.fields.Namespace}/${__data.fields.Kind}/${__value.raw}' },
    { column: 'Namespace', file: 'kpulse-namespace.json', variable: 'namespace', title: 'Open this namespace' },
    { column: 'User', file: 'kpulse-namespace.json', variable: 'hpc_user', title: 'Open this user' },
    { column: 'Account', file: 'kpulse-namespace.json', variable: 'hpc_account', title: 'Open this account' },
    { column: 'Proxy', file: 'kpulse-proxy.json', variable: 'instance', title: 'Open this proxy' },
  ],
  // A row passes on its own cluster, since hosts of two clusters may have the same name. If the series have no
  // such label, Grafana leaves the variable empty, which selects series without the label.
  local row(c, to) = {
    title: to.title,
    url: base(c, to.file) + 'var-datasource=${datasource}&var-cluster=${__data.fields.Cluster}&var-%s=%s&${__url_time_range}' % [to.variable, std.get(to, 'value', '${__value.raw}')],
    targetBlank: false,
  },

  // ofMany lists the tags of pages of many hosts.
  ofMany(c):: c.grafanaKpulse.dashboardTags + ['many-hosts'],

  // ofPage returns the links at the top of each page. The selection is passed on only to pages of many hosts: a
  // page of one host or job would treat "All" as one, and mix several.
  ofPage(c)::
    local link = { tags: [], asDropdown: false, includeVars: false, keepTime: true, targetBlank: false, icon: 'external link', tooltip: '', url: '' };
    [
      link { type: 'dashboards', title: 'kpulse', tags: $.ofMany(c), asDropdown: true, includeVars: true },
    ] + [
      link { type: 'link', title: c.grafanaKpulse.dashboardNamePrefix + one[0], url: base(c, one[1]) + 'var-datasource=${datasource}', icon: 'dashboard' }
      for one in [['Node', 'kpulse-node.json'], ['Job', 'kpulse-job.json']]
    ] + [
      link {
        type: 'link',
        title: 'Version %d' % changes.version,
        tooltip: changes.line,
        url: 'https://github.com/kpulse/kpulse-proxy/blob/main/CHANGELOG.md',
        icon: 'info',
        keepTime: false,
        targetBlank: true,
      },
    ],

  // ofRows links all such cells of a panel if it is a table.
  ofRows(c, panel)::
    local shown = std.flatMap(function(step) std.objectValues(std.get(step.options, 'renameByName', {})), std.get(panel, 'transformations', []));
    std.foldl(
      function(table, to) table + p.column(to.column, { links: [row(c, to)] }),
      [to for to in pages if panel.type == 'table' && std.member(shown, to.column)],
      panel
    ),
}

// Gives each alert the URL of the dashboard for its subject, with host, GPU, job or proxy selected, from an hour before
// the alert began until now.
{
  local c = $._config,
  // chosen sets a variable to the value of a label, if present.
  local chosen(variable, label) = '{{ with $labels.%s }}&var-%s={{ . | urlquery }}{{ end }}' % [label, variable],
  // began is the time, in milliseconds, for the alert with the same values of some labels. At the first evaluation the
  // series is not there yet; in a ruler without it, the time moves on with the evaluations.
  local began(alert, of) =
    '{{ range printf `1000 * ((min(ALERTS_FOR_STATE{%s}) or vector(time())) - 3600)` %s | query }}{{ .Value | printf "%%.0f" }}{{ end }}'
    % [std.join(', ', ['alertname="%s"' % alert] + [label + '=%q' for label in of]), std.join(' ', ['$labels.' + label for label in of])],
  // page is a dashboard with variables set from labels, [[variable, label], ...], for an alert; more are labels of the
  // alert that the page has no variable for.
  local page(file, list=[], more=[]) = function(alert)
    '%s%s/d/%s?from=%s&to=now' % [c.grafanaURL, c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs[file], began(alert, [c.clusterLabel] + [v[1] for v in list] + more)]
    + chosen('cluster', c.clusterLabel) + std.join('', [chosen(v[0], v[1]) for v in list]),

  local gpu = page('kpulse-gpu.json', [['hostname', 'hostname'], ['gpu', 'uuid']]),
  local node = page('kpulse-node.json', [['hostname', 'hostname']]),
  local proxy = page('kpulse-proxy.json', [['instance', 'instance']]),
  local job = function(alert)
    page('kpulse-job.json', [], ['workload_namespace', 'hpc_job', 'workload_kind', 'workload_name'])(alert)
    + '&var-job={{ with $labels.hpc_job }}{{ . | urlquery }}{{ else }}{{ printf `%s/%s/%s` $labels.workload_namespace $labels.workload_kind $labels.workload_name | urlquery }}{{ end }}',

  // By group; by alert if it has another subject than its group.
  local pages = {
    'kpulse-proxy': proxy,
    'kpulse-gpu': gpu,
    'kpulse-actions': gpu,
    'kpulse-jobs': job,
    'kpulse-efficiency': gpu,
    // For a board without a uuid, the page of its host.
    KpulseGPUMissing: function(alert) '{{ if $labels.uuid }}%s{{ else }}%s{{ end }}' % [gpu(alert), node(alert)],
    KpulseNVSwitchErrors: node,
    KpulseNamespaceWaste: page('kpulse-namespace.json', [['namespace', 'workload_namespace']]),
    KpulseAccountWaste: page('kpulse-namespace.json', [['hpc_account', 'hpc_account']]),
  },

  prometheusAlerts+:: {
    groups: [
      group { rules: [
        rule { annotations+: { dashboard_url: std.get(pages, rule.alert, pages[group.name])(rule.alert) } }
        for rule in group.rules
      ] }
      for group in super.groups
    ],
  },
}

// Gives each alert the URL of the dashboard for its subject, with host, GPU, job or proxy selected.
{
  local c = $._config,
  local base(file) = '%s%s/d/%s?from=%s&to=now' % [c.grafanaURL, c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs[file], c.grafanaKpulse.period],
  // chosen sets a variable to the value of a label, if present.
  local chosen(variable, label) = '{{ with $labels.%s }}&var-%s={{ . | urlquery }}{{ end }}' % [label, variable],
  // page is a dashboard with variables set from labels: [[variable, label], ...].
  local page(file, list=[]) = base(file) + chosen('cluster', c.clusterLabel) + std.join('', [chosen(v[0], v[1]) for v in list]),

  local gpu = page('kpulse-gpu.json', [['hostname', 'hostname'], ['gpu', 'uuid']]),
  local node = page('kpulse-node.json', [['hostname', 'hostname']]),
  local proxy = page('kpulse-proxy.json', [['instance', 'instance']]),
  local job = page('kpulse-job.json') + '&var-job={{ with $labels.hpc_job }}{{ . | urlquery }}{{ else }}{{ printf `%s/%s/%s` $labels.workload_namespace $labels.workload_kind $labels.workload_name | urlquery }}{{ end }}',

  // By group; by alert if it has another subject than its group.
  local pages = {
    'kpulse-proxy': proxy,
    'kpulse-gpu': gpu,
    'kpulse-actions': gpu,
    'kpulse-jobs': job,
    'kpulse-efficiency': gpu,
    // For a board without a uuid, the page of its host.
    KpulseGPUMissing: '{{ if $labels.uuid }}%s{{ else }}%s{{ end }}' % [gpu, node],
    KpulseNVSwitchErrors: node,
    KpulseNamespaceWaste: page('kpulse-namespace.json', [['namespace', 'workload_namespace']]),
  },

  prometheusAlerts+:: {
    groups: [
      group { rules: [
        rule { annotations+: { dashboard_url: if std.objectHas(pages, rule.alert) then pages[rule.alert] else pages[group.name] } }
        for rule in group.rules
      ] }
      for group in super.groups
    ],
  },
}

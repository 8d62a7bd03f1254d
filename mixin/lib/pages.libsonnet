// Gives each alert the address of the dashboard that shows what it is about, with host, GPU, job or proxy chosen.
{
  local c = $._config,
  local base(file) = '%s%s/d/%s?from=%s&to=now' % [c.grafanaURL, c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs[file], c.grafanaKpulse.period],
  // chosen sets a variable to what a label says, where there is one.
  local chosen(variable, label) = '{{ with $labels.%s }}&var-%s={{ . | urlquery }}{{ end }}' % [label, variable],
  // page is a dashboard with variables chosen by labels: [[variable, label], ...].
  local page(file, list=[]) = base(file) + chosen('cluster', c.clusterLabel) + std.join('', [chosen(v[0], v[1]) for v in list]),

  local gpu = page('kpulse-gpu.json', [['hostname', 'hostname'], ['gpu', 'uuid']]),
  local node = page('kpulse-node.json', [['hostname', 'hostname']]),
  local proxy = page('kpulse-proxy.json', [['instance', 'instance']]),
  local job = page('kpulse-namespace.json', [['namespace', 'workload_namespace'], ['hpc_job', 'hpc_job']]),

  // By group, and by alert where one of a group is about something else.
  local pages = {
    'kpulse-proxy': proxy,
    'kpulse-gpu': gpu,
    'kpulse-actions': gpu,
    'kpulse-jobs': job,
    'kpulse-efficiency': gpu,
    // Of a board that is not known by its uuid, its host is.
    KpulseGPUMissing: '{{ if $labels.uuid }}%s{{ else }}%s{{ end }}' % [gpu, node],
    KpulseNVSwitchErrors: node,
    KpulseNamespaceWaste: job,
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

// Links between the dashboards; they carry the variables and the time range.
{
  local base(c, file) = '%s/d/%s?${__all_variables}&${__url_time_range}' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs[file]],
  to(c, file, title):: { title: title, url: base(c, file), targetBlank: false },
  // gpu opens the GPU of a row of a table that has a field uuid.
  gpu(c):: {
    title: 'Open this GPU',
    url: '%s/d/%s?var-datasource=${datasource}&${cluster:queryparam}&var-gpu=${__value.raw}&${__url_time_range}' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs['kpulse-gpu.json']],
    targetBlank: false,
  },
  host(c):: {
    title: 'Open this host',
    url: '%s/d/%s?var-datasource=${datasource}&${cluster:queryparam}&var-hostname=${__value.raw}&${__url_time_range}' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs['kpulse-node.json']],
    targetBlank: false,
  },
  job(c):: {
    title: 'Open this job',
    url: '%s/d/%s?var-datasource=${datasource}&${cluster:queryparam}&var-hpc_job=${__value.raw}&${__url_time_range}' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs['kpulse-namespace.json']],
    targetBlank: false,
  },
  namespace(c):: {
    title: 'Open this namespace',
    url: '%s/d/%s?var-datasource=${datasource}&${cluster:queryparam}&var-namespace=${__value.raw}&${__url_time_range}' % [c.grafanaKpulse.linkPrefix, c.grafanaDashboardIDs['kpulse-namespace.json']],
    targetBlank: false,
  },
}

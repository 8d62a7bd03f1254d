// Efficiency & waste: who holds GPUs without using them, and what does it cost?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local host = q.recorded(c),
  // ofHosts is GPUs that the selected namespaces held on the selected hosts; total is their GPU-hours, ofHeld a
  // share of them.
  local ofHosts(what, over='%s') = 'sum(%s)' % q.held(c, 'host', what, 'workload_namespace', 'namespace', ', hostname=~"$hostname"', over),
  local total(what) = ofHosts(what, q.gpuHours('%s')),
  local ofHeld(part) = q.ratio(total(part), total('held')),
  local hour = 'avg_over_time(%s[1h])',
  // league returns queries of the GPU-hours of holders, by labels.
  local league(by, more) =
    local of(what) = 'sum by (%s) (%s)' % [by, q.held(c, 'holder', what, 'hostname', 'hostname', more, q.gpuHours('%s'))];
    [p.rows(query) for query in q.league([of('idle'), '%g * %s' % [c.gpuHourPrice, of('idle')], of('held'), q.ratio(of('utilized'), of('known'))], by)],
  local spent(first) = p.joined + p.sorted('Value #A') + p.renamed(first + [
                         ['Value #A', 'Idle GPU-hours'],
                         ['Value #B', 'Cost'],
                         ['Value #C', 'Held GPU-hours'],
                         ['Value #D', 'Real utilization'],
                       ]) + p.column('Idle GPU-hours', { decimals: 1 }) + p.column('Held GPU-hours', { decimals: 1 })
                       + p.column('Cost', { unit: c.currency })
                       + p.column('Real utilization', { unit: 'percentunit', decimals: 0, min: 0, max: 1, 'custom.cellOptions': { type: 'gauge', mode: 'basic' } }),

  grafanaDashboards+:: {
    'kpulse-efficiency.json': d.new(
      c,
      'kpulse-efficiency.json',
      'Efficiency & waste',
      'Who holds GPUs without using them, and what does it cost?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.namespace(c)],
      [
        d.row('In the time range', [
          d.at(5, 4, p.stat(
            'Idle GPU-hours',
            'Held but idle in the time range. The tables below show by whom: contact the first three.',
            'none',
            [p.instant(total('idle'))]
          ) + colors.bad('yellow') + p.decimals(1)),
          d.at(5, 4, p.stat(
            'Cost of idle GPU-hours',
            'Idle GPU-hours times the price of a GPU-hour (_config.gpuHourPrice).',
            c.currency,
            [p.instant('%g * %s' % [c.gpuHourPrice, total('idle')])]
          ) + colors.bad('yellow')),
          d.at(5, 4, p.stat(
            'Idle share of held GPU-hours',
            'The share of held GPU-hours in which nothing ran. Above 25 %, look for notebooks and forgotten jobs.',
            'percentunit',
            [p.instant(ofHeld('idle'))]
          ) + colors.count + p.range(0, 1)),
          d.at(5, 4, p.stat(
            'Utilized share of held GPU-hours',
            'Real utilization of the held GPU-hours. The rest was unused, but no work uses all: on an H200 a large matrix product reaches 77 %, a copy 61 %, a kernel without tensor cores 44 %.',
            'percentunit',
            [p.instant(ofHeld('utilized'))]
          ) + colors.good + p.range(0, 1)),
          d.at(4, 4, p.stat(
            'Free GPUs',
            'GPUs that are free now. If many are free while jobs wait, the scheduler or a quota is in the way.',
            'none',
            [p.instant('sum(host:kpulse_gpus_present:count%s) - (sum(host:kpulse_allocation_held_gpus:rate5m%s) or vector(0))' % [host, host])]
          ) + colors.count + p.decimals(1)),
        ]),
        d.row('Who holds them', [
          d.at(12, 10, p.table(
            'Namespaces by idle GPU-hours',
            'The most idle GPU-hours first. Click a namespace to open it.',
            'none',
            league('%s, workload_namespace' % c.clusterLabel, ', workload_namespace!="", workload_namespace=~"$namespace"')
          ) + spent([[c.clusterLabel, 'Cluster'], ['workload_namespace', 'Namespace']])),
          d.at(12, 10, p.table(
            'Jobs by idle GPU-hours',
            'Jobs of a batch system, whatever namespace is selected, the most idle GPU-hours first. A job with many GPUs and one busy requested too many.',
            'none',
            league('%s, hpc_job' % c.clusterLabel, ', hpc_job!=""')
          ) + spent([[c.clusterLabel, 'Cluster'], ['hpc_job', 'Job']])),
        ]),
        d.row('What to reclaim now', [
          d.at(14, 11, p.table(
            'Devices held and idle',
            'Devices with real utilization below %g over the last hour, and their holders. Ask the owner, or let a culler reclaim them.' % c.idleUtilizationThreshold,
            'none',
            [
              p.rows(
                q.most('max by (%(labels)s, %(holder)s) (allocation:kpulse_allocation_held_gpus:rate5m%(sel)s)\nand on (%(labels)s)\n%(hour)s < %(idle)g')
                % { labels: labels.device(c), holder: labels.holder(c), sel: q.recorded(c, ', workload_namespace=~"$namespace"'), hour: q.utilization(labels.device(c), q.recorded(c), hour), idle: c.idleUtilizationThreshold }
              ),
            ]
          ) + p.sorted('Value') + p.renamed(labels.columns(c) + [
            ['workload_namespace', 'Namespace'],
            ['workload_pod', 'Pod'],
            ['hpc_job', 'Job'],
            ['Value', 'GPUs'],
          ]) + p.column('GPUs', { decimals: 2 })),
          d.at(10, 11, p.table(
            'GPU-Util far above real utilization',
            'The 20 devices with the widest gap between GPU-Util and real utilization over the last hour. Their jobs need a profiler, not more GPUs.',
            'percentunit',
            [p.rows('topk(20, max by (%s) (%s))' % [labels.device(c), q.ofHolders(c, function(more) 'max by (%s) (%s) - %s' % [
              labels.device(c),
              hour % ('device:kpulse_gpu_nvml_utilization:avg5m' + q.recorded(c, more)),
              q.utilization(labels.device(c), q.recorded(c, more), hour),
            ])])]
          ) + p.sorted('Value') + p.renamed(labels.columns(c) + [['Value', 'Gap']])),
        ]),
        d.row('Trend', [
          d.at(12, 8, p.timeseries(
            'Idle GPUs, now and a week ago',
            'The first line should stay below the second.',
            'none',
            [
              p.query(ofHosts('idle'), 'now'),
              p.query(ofHosts('idle', '%s offset 1w'), 'a week ago'),
            ]
          ) + p.lines([['now', 'blue'], ['a week ago', '#6e7077']])),
          d.at(12, 8, p.timeseries(
            'Memory held by idle GPUs',
            'Device memory in use on GPUs of the selected hosts that have been idle for five minutes: often processes that were left behind.',
            'bytes',
            [p.query('sum(host:kpulse_gpu_idle_memory:min5m%s)' % q.recorded(c), 'held')]
          )),
        ]),
      ]
    ),
  },
}

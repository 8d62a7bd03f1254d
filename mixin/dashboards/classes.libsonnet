// Workload classes: what kind of work do the GPUs do, and what bounds it? All times come from the ledger's
// counters, which also cover the time between scrapes.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  // gpus is GPUs by class: those of the selected hosts, or those that the selected namespaces held.
  local gpus(more='', over='%s') =
    local of(series, matchers) = over % (series + q.recorded(c, matchers + more));
    '(%s\nor\n%s)' % [
      of('host:kpulse_gpu_class_gpus:rate5m', ', workload_namespace=~"$namespace"'),
      of('allocation:kpulse_allocation_class_gpus:rate5m', q.some('workload_namespace', 'namespace')),
    ],
  local share(classes) =
    local total(more='') = 'sum(%s)' % gpus(more, 'sum_over_time(%s[$__range])');
    q.ratio(total(', class=~"%s"' % std.join('|', classes)), total()) + ' or vector(0)',
  // hoursIn is GPU-hours by holder; slow lists the classes that call for a profiler.
  local whom = '%s, workload_namespace, hpc_job' % c.clusterLabel,
  local hoursIn(class) = 'sum by (%s) (%s)' % [whom, q.held(c, 'holder', 'class', 'hostname', 'hostname', ', workload_namespace=~"$namespace", class=~"%s"' % class, q.gpuHours('%s'))],
  local slow = ['io_or_data_loading', 'busy_low_sm_use'],
  local slowest = q.most(hoursIn(std.join('|', slow))),
  // least returns the least used devices, those of unknown utilization last.
  local least = q.least(q.ofHolders(c, function(more) '(%s or 2 * max by (%s) (kpulse_gpu_workload_class%s == 1))' % [
    q.device(c, 'kpulse_gpu_real_utilization_ratio', more),
    labels.device(c),
    q.raw(c, more),
  ])),
  local ofLeast(query) = q.among(query, least, labels.device(c)),
  local bottleneck(word, title, description) = d.at(5, 4, p.stat(
    title, description, 'percentunit', [p.instant(share([class[0] for class in colors.classes if class[2] == word]))]
  ) + colors.count + p.range(0, 1)),

  grafanaDashboards+:: {
    'kpulse-classes.json': d.new(
      c,
      'kpulse-classes.json',
      'Workload classes',
      'What kind of work do the GPUs do, and what bounds it?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.namespace(c)],
      [
        d.row('In the time range', [
          bottleneck('compute', 'Arithmetic', 'Time in compute-bound classes: what GPUs are bought for.'),
          bottleneck('memory', 'Device memory', 'Time in memory-bound classes. Fused kernels and larger tiles help.'),
          bottleneck('io', 'Waiting for data', 'Time spent waiting for data. Check data loaders, storage and PCIe before you buy GPUs.'),
          bottleneck('mixed', 'No clear bound', 'Time that is busy without a clear bound, or barely busy.'),
          d.at(4, 4, p.stat('Idle time', 'Share of the time in which nothing ran.', 'percentunit', [p.instant(share(['idle']))]) + colors.count + p.range(0, 1)),
        ]),
        d.row('Time in class', [
          d.at(10, 11, p.barGauge(
            'GPU-hours by class',
            'In the time range, the longest first; for selected namespaces, the GPUs that they held. "unknown": too few inputs were read; see Proxy for the missing fields.',
            'none',
            [p.instant('sort_desc(sum by (class) (%s))' % gpus('', q.gpuHours('%s')), '{{class}}')]
          ) + colors.byClass + p.decimals(1) + p.range(0, null) + p.glossary(import '../lib/classes.json')),
          d.at(14, 11, p.stacked(
            'Share of GPUs by class',
            'The share of GPUs in each class; idle at the bottom.',
            'percentunit',
            p.idleFirst(function(matcher) 'sum by (class) (%s)\n/ on () group_left ()\n(sum(%s) > 0)' % [gpus(', ' + matcher), gpus()])
          ) + colors.byClass + p.range(0, 1)),
        ]),
        d.row('Who to help first', [
          d.at(12, 10, p.table(
                         'Waiting for data, or busy and empty',
                         'GPU-hours in io_or_data_loading and busy_low_sm_use by namespace and job. Profile the first ones first.',
                         'none',
                         [p.rows(q.among(hoursIn(class), slowest, whom)) for class in slow]
                       ) + p.joined + p.sorted('Value #A') + p.renamed([[c.clusterLabel, 'Cluster'], ['workload_namespace', 'Namespace'], ['hpc_job', 'Job'], ['Value #A', 'Waiting for data'], ['Value #B', 'Busy and empty']])
                       + p.column('Waiting for data', { decimals: 1 }) + p.column('Busy and empty', { decimals: 1 })),
          d.at(12, 10, p.table(
            'Job stragglers',
            'Devices far below the median of their job: the others wait for them. Check their clocks, health and links.',
            'percentunit',
            [p.rows(q.least('max by (%s, %s) (\n%s)' % [labels.device(c), labels.holder(c), q.straggling(c, ', %s=~"$cluster", hostname=~"$hostname", workload_namespace=~"$namespace"' % c.clusterLabel)]))]
          ) + p.sorted('Value', false) + p.renamed([
            ['hpc_job', 'Job'],
            ['workload_namespace', 'Namespace'],
            ['workload_kind', 'Kind'],
            ['workload_name', 'Workload'],
          ] + labels.columns(c) + [
            ['Value', 'Share of median'],
          ])),
        ]),
        d.row('Now', [
          d.at(24, 10, p.table(
            'Least used devices',
            'What they are doing now, with the inputs of the class. An empty cell was not read.',
            'percentunit',
            [
              p.rows(ofLeast('max by (%s, class, bottleneck) (kpulse_gpu_workload_class%s == 1)' % [labels.device(c), q.raw(c)])),
              p.rows(ofLeast(q.device(c, 'kpulse_gpu_real_utilization_ratio'))),
              p.rows(ofLeast(q.device(c, 'kpulse_gpu_sm_active_ratio'))),
              p.rows(ofLeast(q.device(c, 'kpulse_gpu_tensor_active_ratio'))),
              p.rows(ofLeast(q.device(c, 'kpulse_gpu_dram_active_ratio'))),
            ]
          ) + p.joined + p.sorted('Value #B', false) + p.renamed([
            [c.clusterLabel, 'Cluster'],
            ['hostname', 'Host'],
            ['gpu', 'GPU'],
            ['mig_profile', 'MIG profile'],
            ['uuid', 'UUID'],
            ['class', 'Class'],
            ['bottleneck', 'Bound by'],
            ['Value #B', 'Real utilization'],
            ['Value #C', 'SM'],
            ['Value #D', 'Tensor'],
            ['Value #E', 'DRAM'],
          ]) + p.decimals(0)),
        ]),
      ]
    ),
  },
}

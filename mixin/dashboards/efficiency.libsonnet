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
  // here is GPU-hours of holders on the selected hosts, everywhere those on all. unused is what they held times the
  // share that real utilization leaves; holders of unknown utilization count for nothing.
  local here(what, more) = q.held(c, 'holder', what, 'hostname', 'hostname', more, q.gpuHours('%s')),
  local everywhere(what, more) = '(%s)' % q.ofLevel(c, 'holder', what, more, q.gpuHours('%s')),
  local unused(hours, more) = '%s * (1 - %s)' % [hours('held', more), q.ratio(hours('utilized', more), hours('known', more))],
  local priced(query) = '%g * %s' % [c.gpuHourPrice, query],
  local ofNamespaces = ', workload_namespace=~"$namespace"',
  // league returns queries of the GPU-hours of holders, by labels.
  local league(by, more, hours) =
    local sum(query) = 'sum by (%s) (%s)' % [by, query];
    local rows = q.league([
      sum(unused(hours, more)),
      sum(hours('held', more)),
      sum(hours('idle', more)),
      q.ratio(sum(hours('utilized', more)), sum(hours('known', more))),
    ], by);
    [p.rows(query) for query in [rows[0], priced(rows[0])] + rows[1:]],
  local spent(first) = p.joined + p.sorted('Value #A') + p.renamed([[c.clusterLabel, 'Cluster']] + first + [
                         ['Value #A', 'Unused'],
                         ['Value #B', 'Cost'],
                         ['Value #C', 'Held'],
                         ['Value #D', 'Idle'],
                         ['Value #E', 'Real utilization'],
                       ]) + p.column('Unused', { decimals: 1 }) + p.column('Held', { decimals: 1 }) + p.column('Idle', { decimals: 1 })
                       + p.column('Cost', { unit: c.currency, decimals: 2 })
                       + p.column('Real utilization', colors.share),
  local wasted(title, who, labels, columns, more, hours=here) = p.table(
    title,
    'GPU-hours in the time range, those with the most unused first. Unused: held times what real utilization leaves; Cost: of the unused; Idle: the part in which nothing ran. ' + who,
    'none',
    league('%s, %s' % [c.clusterLabel, labels], more, hours)
  ) + spent(columns),
  // Devices that are held and that did nothing in the last hour, by device and holder: counters of the seconds for
  // which the holder has held the device, and idled.
  local whose = '%s, workload_namespace, workload_pod, hpc_job' % labels.device(c),
  local since(counter, more='') = 'sum by (%s) (max by (%s, workload_container) (kpulse_allocation_%s_total%s))' % [whose, whose, counter, q.raw(c, ofNamespaces + more)],
  local idlers = 'sum by (%s) (allocation:kpulse_allocation_held_gpus:rate5m%s)\nand on (%s)\n%s < %g' % [
    whose,
    q.recorded(c, ofNamespaces),
    labels.device(c),
    q.utilization(labels.device(c), host, hour),
    c.idleUtilizationThreshold,
  ],
  local idled = '(%s)' % q.or0(since('class_seconds', ', class="idle"'), since('seconds')),
  local longest = q.most('%s\nand on (%s)\n(%s)' % [idled, whose, idlers]),
  local held = 'sum(host:kpulse_allocation_held_gpus:rate5m%s)' % host,
  local present = 'sum(host:kpulse_gpus_present:count%s)' % host,

  grafanaDashboards+:: {
    'kpulse-efficiency.json': d.new(
      c,
      'kpulse-efficiency.json',
      'Efficiency & waste',
      'Who holds GPUs without using them, and what does it cost?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.namespace(c)],
      [
        d.row('In the time range', [
          d.at(6, 3, p.stat(
            'Idle GPU-hours',
            'Held but idle in the time range. The tables below show by whom: contact the first three.',
            'none',
            [p.instant(total('idle'))]
          ) + colors.bad(colors.hot) + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Cost of idle',
            'Idle GPU-hours times the price of a GPU-hour (_config.gpuHourPrice).',
            c.currency,
            [p.instant(priced(total('idle')))]
          ) + colors.bad(colors.hot) + p.decimals(2)),
          d.at(6, 3, p.stat(
            'Idle share of held',
            'The share of held GPU-hours in which nothing ran. Above 25 %, look for notebooks and forgotten jobs.',
            'percentunit',
            [p.instant(ofHeld('idle'))]
          ) + colors.count + p.range(0, 1)),
          d.at(6, 3, p.stat(
            'Free GPUs',
            'GPUs that are free now. If many are free while jobs wait, the scheduler or a quota is in the way.',
            'none',
            [p.instant('clamp_min(%s - (%s or vector(0)), 0)' % [present, held])]
          ) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Unused GPU-hours',
            'Held GPU-hours times what real utilization leaves, idle or not. ' + p.saturating,
            'none',
            [p.instant('sum(%s)' % unused(here, ofNamespaces))]
          ) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Cost of unused',
            'Unused GPU-hours times the price of a GPU-hour (_config.gpuHourPrice). Not all of it can be saved: see Unused GPU-hours.',
            c.currency,
            [p.instant(priced('sum(%s)' % unused(here, ofNamespaces)))]
          ) + colors.count + p.decimals(2)),
          d.at(6, 3, p.stat(
            'Used share of held',
            'Real utilization of the held GPU-hours. The rest was unused. ' + p.saturating,
            'percentunit',
            [p.instant(ofHeld('utilized'))]
          ) + colors.good + p.range(0, 1)),
          d.at(6, 3, p.stat(
            'Held GPU-hours',
            'GPU-hours that the selected namespaces held on the selected hosts in the time range. Compare them with what the GPUs could give.',
            'none',
            [p.instant(total('held'))]
          ) + colors.count + p.decimals(1)),
        ]),
        d.row('Who holds them', [
          d.at(24, 10, wasted(
            'Holders by unused GPU-hours',
            'Click a job or a namespace to open it.',
            'workload_namespace, workload_kind, workload_name, hpc_job',
            [['workload_namespace', 'Namespace'], ['workload_kind', 'Kind'], ['workload_name', 'Workload'], ['hpc_job', 'Job']],
            ofNamespaces
          )),
          d.at(12, 10, wasted('Namespaces by unused GPU-hours', 'Click a namespace to open it.', 'workload_namespace', [['workload_namespace', 'Namespace']], ', workload_namespace!=""' + ofNamespaces)),
          d.at(12, 10, wasted('Users by unused GPU-hours', 'Users of a batch system, on all hosts; the proxy needs --hpc-job-info-dir.', 'hpc_user', [['hpc_user', 'User']], ', hpc_user!=""', everywhere)),
          d.at(12, 10, wasted('Accounts by unused GPU-hours', 'Accounts of a batch system, on all hosts; the proxy needs --hpc-job-info-dir.', 'hpc_account', [['hpc_account', 'Account']], ', hpc_account!=""', everywhere)),
          d.at(12, 10, p.table(
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
        d.row('What to reclaim now', [
          d.at(24, 11, p.table(
            'Devices held and idle',
            'Devices with real utilization below %g over the last hour, and their holders, those that idled longest first. Held for: since the holder came, or the proxy started; Idle of it: in all of that time. Ask the owner, or let a culler reclaim them.' % c.idleUtilizationThreshold,
            's',
            [
              p.rows(longest),
              p.rows(q.among(since('seconds'), longest, whose)),
              p.rows(q.among('sum by (%s) (allocation:kpulse_allocation_held_gpus:rate5m%s)' % [whose, q.recorded(c, ofNamespaces)], longest, whose)),
            ]
          ) + p.joined + p.sorted('Value #A') + p.renamed(labels.columns(c) + [
            ['workload_namespace', 'Namespace'],
            ['workload_pod', 'Pod'],
            ['hpc_job', 'Job'],
            ['Value #A', 'Idle of it'],
            ['Value #B', 'Held for'],
            ['Value #C', 'GPUs'],
          ]) + p.decimals(1) + p.column('GPUs', { unit: 'none', decimals: 2 })),
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
            'GPUs held, free and in all',
            'All GPUs of the selected hosts, those that a pod or job holds, and the rest; GPUs that were lost count as held for up to five minutes. If some stay free while jobs wait, the scheduler or a quota is in the way; if none do, more are needed.',
            'none',
            [
              p.query(held, 'held'),
              p.query('clamp_min(%s - %s, 0)' % [present, held], 'free'),
              p.query(present, 'in all'),
            ]
          ) + p.lines([['held', 'blue'], ['free', 'green'], ['in all', '#6e7077']])),
          d.at(24, 7, p.timeseries(
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

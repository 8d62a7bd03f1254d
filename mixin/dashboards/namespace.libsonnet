// Namespace & user: what does this team, or this job, get out of its GPUs?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local links = import '../lib/links.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local mine = q.cluster(c, ', workload_namespace=~"$namespace"'),
  local jobs = q.cluster(c, ', hpc_job=~"$hpc_job", hpc_job!=""'),
  local ns(metric) = 'namespace:%s%s' % [metric, mine],
  // either(of, metric) is of the namespaces or, where there are none, of the jobs of a batch system;
  // `of` is a function of a series.
  local either(of, metric) = '(%s or on () %s)' % [of(ns(metric)), of('job:%s%s' % [metric, jobs])],
  local now(series) = 'sum(%s)' % series,
  local total(series) = 'sum(sum_over_time(%s[$__range]))' % series,
  local held = q.recorded(c, ', workload_namespace=~"$namespace", hpc_job=~"$hpc_job"'),
  local utilized(level, by, selector) =
    'sum by (%(by)s) (sum_over_time(%(level)s:kpulse_allocation_utilized_gpus:rate5m%(sel)s[$__range]))\n/\nsum by (%(by)s) (sum_over_time(%(level)s:kpulse_allocation_known_gpus:rate5m%(sel)s[$__range]))'
    % { by: by, level: level, sel: selector },
  local league(level, by, selector) = [
    p.rows('sum by (%s) (%s)' % [by, q.gpuHours('%s:kpulse_allocation_held_gpus:rate5m%s' % [level, selector])]),
    p.rows('sum by (%s) (%s)' % [by, q.gpuHours('%s:kpulse_allocation_idle_gpus:rate5m%s' % [level, selector])]),
    p.rows(utilized(level, by, selector)),
    p.rows('sum by (%s) (sum_over_time(%s:kpulse_allocation_energy:rate5m%s[$__range])) * 60 / 3.6e6' % [by, level, selector]),
  ],
  local spent(first) = p.joined + p.sorted('Value #A') + p.renamed(first + [
                         ['Value #A', 'GPU-hours'],
                         ['Value #B', 'Idle GPU-hours'],
                         ['Value #C', 'Real utilization'],
                         ['Value #D', 'Energy'],
                       ]) + p.column('GPU-hours', { decimals: 1 }) + p.column('Idle GPU-hours', { decimals: 1 })
                       + p.column('Real utilization', { unit: 'percentunit', decimals: 0, min: 0, max: 1, 'custom.cellOptions': { type: 'gauge', mode: 'basic' } })
                       + p.column('Energy', { unit: 'kwatth', decimals: 1 }),

  grafanaDashboards+:: {
    'kpulse-namespace.json': d.new(
      c,
      'kpulse-namespace.json',
      'Namespace & user',
      'What does this team, or this job, get out of its GPUs?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.namespace(c), v.job(c)],
      [
        d.row('In the time range', [
          d.at(4, 4, p.stat(
            'Share of all',
            'GPU-hours of these namespaces, or jobs where there are no namespaces, among all that were held. Compare it with the share that they pay for.',
            'percentunit',
            [p.instant('%s / %s' % [either(total, 'kpulse_allocation_held_gpus:rate5m'), total('cluster:kpulse_allocation_held_gpus:rate5m' + q.cluster(c))])]
          ) + colors.count + p.range(0, 1)),
          d.at(4, 4, p.stat('GPUs now', 'GPUs held at the end of the time range.', 'none', [p.instant(either(now, 'kpulse_allocation_held_gpus:rate5m'))]) + colors.count + p.decimals(1)),
          d.at(4, 4, p.stat('GPU-hours', 'Held within the time range.', 'none', [p.instant(either(total, 'kpulse_allocation_held_gpus:rate5m') + ' / 60')]) + colors.count + p.decimals(1)),
          d.at(4, 4, p.stat(
            'Idle of it',
            'Share in which nothing ran. Above a quarter: give GPUs back between runs, or stop notebooks at night.',
            'percentunit',
            [p.instant('%s / %s' % [either(total, 'kpulse_allocation_idle_gpus:rate5m'), either(total, 'kpulse_allocation_held_gpus:rate5m')])]
          ) + colors.count + p.range(0, 1)),
          d.at(4, 4, p.stat(
            'Real utilization',
            'While held and known. Low with little idle time: the jobs run, but leave the GPUs empty; see the class mix.',
            'percentunit',
            [p.instant('%s / %s' % [either(total, 'kpulse_allocation_utilized_gpus:rate5m'), either(total, 'kpulse_allocation_known_gpus:rate5m')])]
          ) + colors.good + p.range(0, 1)),
          d.at(4, 4, p.stat('Energy', 'An estimate by what they did on the boards, or in proportion to what was held of them where a proxy gives none.', 'kwatth', [p.instant(either(total, 'kpulse_allocation_energy:rate5m') + ' * 60 / 3.6e6')]) + colors.count + p.decimals(1)),
        ]),
        d.row('Over time', [
          d.at(12, 9, p.stacked('What their GPUs do', 'GPUs held by workload class. Orange waits for data, green is busy without using the GPU well.', 'none', [p.query(either(function(series) 'sum by (class) (%s)' % series, 'kpulse_allocation_class_gpus:rate5m'), '{{class}}')]) + colors.byClass),
          d.at(12, 9, p.stacked('GPUs held by namespace', 'Who grew, and when; by job where there are no namespaces.', 'none', [p.query(either(function(series) 'sum by (workload_namespace, hpc_job) (%s)' % series, 'kpulse_allocation_held_gpus:rate5m'), '{{workload_namespace}}{{hpc_job}}')])),
        ]),
        d.row('Leagues', [
          d.at(12, 10, p.table(
            'Workloads',
            'Deployments, jobs and the like of Kubernetes, the largest first.',
            'none',
            league('workload', '%s, workload_namespace, workload_kind, workload_name' % c.clusterLabel, q.cluster(c, ', workload_namespace=~"$namespace", workload_namespace!=""'))
          ) + spent([['workload_namespace', 'Namespace'], ['workload_kind', 'Kind'], ['workload_name', 'Workload']])),
          d.at(12, 10, p.table(
            'Jobs',
            'Jobs of a batch system such as Slurm, the largest first.',
            'none',
            league('job', '%s, hpc_job' % c.clusterLabel, jobs)
          ) + spent([['hpc_job', 'Job']])),
          d.at(12, 10, p.table(
            'Users',
            'Of a batch system, the largest first, where the proxy knows whose the jobs are (--hpc-job-info-dir).',
            'none',
            league('owner', '%s, hpc_user' % c.clusterLabel, q.cluster(c, ', hpc_user!=""'))
          ) + spent([['hpc_user', 'User']])),
          d.at(12, 10, p.table(
            'Accounts',
            'Of a batch system, the largest first. Compare them with the shares that they were promised.',
            'none',
            league('owner', '%s, hpc_account' % c.clusterLabel, q.cluster(c, ', hpc_account!=""'))
          ) + spent([['hpc_account', 'Account']])),
        ]),
        d.row('Device by device', [
          d.at(24, 10, p.table(
                         'GPUs held now',
                         'Each device and its holder, the least used first, with the room left in its memory. Nearly full: the next larger batch will not fit. Nearly empty: a MIG instance might do.',
                         'none',
                         [
                           p.rows('max by (%s, %s) (allocation:kpulse_allocation_held_gpus:rate5m%s)' % [labels.device(c), labels.holder(c), held]),
                           p.rows('max by (%s, %s) (allocation:kpulse_allocation_real_utilization:avg5m%s)' % [labels.device(c), labels.holder(c), held]),
                           p.rows(
                             'max by (%(device)s, %(holder)s) (allocation:kpulse_allocation_held_gpus:rate5m%(held)s)\n* 0 + on (%(device)s) group_left ()\n(1 - %(used)s)'
                             % { device: labels.device(c), holder: labels.holder(c), held: held, used: '%s / on (%s) %s' % [q.device(c, 'kpulse_gpu_framebuffer_used_bytes'), labels.device(c), q.device(c, 'kpulse_gpu_framebuffer_total_bytes')] }
                           ),
                         ]
                       ) + p.joined + p.sorted('Value #B', false) + p.renamed([
                         ['workload_namespace', 'Namespace'],
                         ['workload_pod', 'Pod'],
                         ['hpc_job', 'Job'],
                         ['hostname', 'Host'],
                         ['gpu', 'GPU'],
                         ['mig_profile', 'MIG profile'],
                         ['uuid', 'UUID'],
                         ['Value #A', 'GPUs'],
                         ['Value #B', 'Real utilization'],
                         ['Value #C', 'Memory free'],
                       ]) + p.column('UUID', { links: [links.gpu(c)] }) + p.column('GPUs', { decimals: 2 })
                       + p.column('Real utilization', { unit: 'percentunit', decimals: 0 }) + p.column('Memory free', { unit: 'percentunit', decimals: 0 })),
        ]),
      ]
    ),
  },
}

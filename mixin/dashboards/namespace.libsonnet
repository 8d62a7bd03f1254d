// Namespace & user: what does this team, or this job, get out of its GPUs?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  // mine selects series by holder: any of namespace, job, user and account may be selected.
  local mine(more='') = q.cluster(c, ', workload_namespace=~"$namespace", hpc_job=~"$hpc_job", hpc_user=~"$hpc_user", hpc_account=~"$hpc_account"' + more),
  local of(metric, more='') = 'holder:%s%s' % [metric, mine(more)],
  local total(metric, more='') = 'sum(sum_over_time(%s[$__range]))' % of(metric, more),
  local holder = '%s, workload_namespace, workload_kind, workload_name, hpc_job' % c.clusterLabel,
  local byWhom = '%s, workload_namespace, hpc_job' % c.clusterLabel,
  local sumBy(metric) = 'sum by (%s) (%s)' % [byWhom, of(metric)],
  // held returns a metric of each device, for the selected holders only.
  local held(metric) = '(max by (%(device)s, %(labels)s) (allocation:%(metric)s%(sel)s)\nand on (%(holder)s)\n%(mine)s)'
                       % { device: labels.device(c), labels: labels.holder(c), metric: metric, sel: q.cluster(c, ', workload_namespace=~"$namespace", hpc_job=~"$hpc_job"'), holder: holder, mine: of('kpulse_allocation_held_gpus:rate5m') },
  // gone is their boards that are gone.
  local gone = '(allocation:kpulse_allocation_gone:info%s and on (%s) %s)' % [q.cluster(c, ', workload_namespace=~"$namespace", hpc_job=~"$hpc_job"'), byWhom, of('kpulse_allocation_held_gpus:rate5m')],
  // stalled is the GPUs of jobs that look busy and do no work.
  local stalled =
    local ofJobs(is, by) = '%s and on (%s, %s) gang:kpulse_allocation_stalled_power:ratio5m%s' % [of('kpulse_allocation_held_gpus:rate5m', is), c.clusterLabel, by, q.cluster(c, is)];
    'sum(\n%s\nor\n%s\n) or vector(0)' % [ofJobs(', hpc_job!=""', 'hpc_job'), ofJobs(', hpc_job=""', 'workload_namespace, workload_kind, workload_name')],
  // least returns the least used devices, those of unknown utilization last.
  local utilization = q.ratio(held('kpulse_allocation_utilized_gpus:rate5m'), held('kpulse_allocation_known_gpus:rate5m')),
  local least = q.least('%s or 0 * %s + 2' % [utilization, held('kpulse_allocation_held_gpus:rate5m')]),
  local ofLeast(query) = q.among(query, least, '%s, %s' % [labels.device(c), labels.holder(c)]),
  // league returns queries of the GPU-hours of the holders that had the most of them.
  local league(by, more) =
    local hours(metric, is='') = 'sum by (%s) (%s)' % [by, q.gpuHours(of(metric, more + is))];
    [p.rows(query) for query in q.league([
      hours('kpulse_allocation_held_gpus:rate5m'),
      q.or0(hours('kpulse_allocation_class_gpus:rate5m', ', class="idle"'), hours('kpulse_allocation_held_gpus:rate5m')),
      q.ratio(hours('kpulse_allocation_utilized_gpus:rate5m'), hours('kpulse_allocation_known_gpus:rate5m')),
      '60 * 60 / 3.6e6 * %s' % hours('kpulse_allocation_energy:rate5m'),
    ], by)],
  local used = '%s / on (%s) (%s > 0)' % [
    'max by (%s) (kpulse_gpu_framebuffer_used_bytes%s)' % [labels.device(c), q.cluster(c)],
    labels.device(c),
    'max by (%s) (kpulse_gpu_framebuffer_total_bytes%s)' % [labels.device(c), q.cluster(c)],
  ],
  local spent(first) = p.joined + p.sorted('Value #A') + p.renamed([[c.clusterLabel, 'Cluster']] + first + [
                         ['Value #A', 'GPU-hours'],
                         ['Value #B', 'Idle GPU-hours'],
                         ['Value #C', 'Real utilization'],
                         ['Value #D', 'Energy'],
                       ]) + p.column('GPU-hours', { decimals: 1 }) + p.column('Idle GPU-hours', { decimals: 1 })
                       + p.column('Real utilization', colors.share)
                       + p.column('Energy', { unit: 'kwatth', decimals: 1 }),

  grafanaDashboards+:: {
    'kpulse-namespace.json': d.new(
      c,
      'kpulse-namespace.json',
      'Namespace & user',
      'How well does this team or job use its GPUs?',
      [v.datasource(c), v.cluster(c), v.namespace(c), v.job(c), v.user(c), v.account(c)],
      [
        d.row('In the time range', [
          d.at(6, 3, p.stat(
            'Stalled now',
            'GPUs of jobs that look busy and do no work: below 60 % of their usual power, at a quarter of their usual tensor and memory activity. A checkpoint looks the same for some minutes; after ten, KpulseJobStalled fires.',
            'none',
            [p.instant(stalled)]
          ) + colors.bad('red') + p.decimals(1)),
          d.at(6, 3, p.stat('GPUs held now', 'GPUs held at the end of the time range. If far fewer than the quota, find out what the jobs wait for.', 'none', [p.instant('sum(%s)' % of('kpulse_allocation_held_gpus:rate5m'))]) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Real utilization',
            'Over the time for which it was known. If it is low with little idle time, the jobs run but use little of the GPUs; see the classes below. ' + p.saturating,
            'percentunit',
            [p.instant(q.ratio(total('kpulse_allocation_utilized_gpus:rate5m'), total('kpulse_allocation_known_gpus:rate5m')))]
          ) + colors.good + p.range(0, 1)),
          d.at(6, 3, p.stat(
            'Idle share',
            'The share in which nothing ran. Above 25 %: release GPUs between runs, or stop notebooks at night. A job that hangs is not idle: see Stalled now.',
            'percentunit',
            [p.instant(q.ratio('(%s or vector(0))' % total('kpulse_allocation_class_gpus:rate5m', ', class="idle"'), total('kpulse_allocation_held_gpus:rate5m')))]
          ) + colors.count + p.range(0, 1)),
          d.at(6, 3, p.stat('GPU-hours held', 'Held in the time range; the tables below show by whom.', 'none', [p.instant(total('kpulse_allocation_held_gpus:rate5m') + ' / 60')]) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Share of GPU-hours',
            'The share of all held GPU-hours that the selected namespaces, jobs, users and accounts held. Compare it with the share that they pay for.',
            'percentunit',
            [p.instant(q.ratio(total('kpulse_allocation_held_gpus:rate5m'), 'sum(sum_over_time(host:kpulse_allocation_held_gpus:rate5m%s[$__range]))' % q.cluster(c)))]
          ) + colors.count + p.range(0, 1)),
          d.at(6, 3, p.stat('Energy used', 'Estimated from their activity on the boards, or from their share of the boards where a proxy gives no estimate.', 'kwatth', [p.instant(total('kpulse_allocation_energy:rate5m') + ' * 60 / 3.6e6')]) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat('Power now', 'Drawn by the GPUs that they hold, estimated like the energy. Full load is near the limits of the boards.', 'watt', [p.instant('sum(%s)' % of('kpulse_allocation_energy:rate5m'))]) + colors.count),
        ]),
        d.row('What is wrong', [
          d.at(24, 6, incidents.alerts(c, incidents.ofHolders(c, '(%s\nor\n%s)' % [held('kpulse_allocation_held_gpus:rate5m'), gone])) + {
            description: 'Firing alerts about the selected namespaces and jobs, and about the boards and hosts that they hold, the most urgent first. Click a name to open its runbook. Shows the first %d.' % q.rows,
          }),
        ]),
        d.row('Over time', [
          d.at(12, 9, p.stacked(
            'What their GPUs do',
            'GPUs held, by workload class, idle at the bottom. Orange waits for data, teal is busy but uses the GPU poorly.',
            'none',
            p.idleFirst(function(matcher) 'sum by (class) (%s)' % of('kpulse_allocation_class_gpus:rate5m', ', ' + matcher))
          ) + colors.byClass),
          d.at(12, 9, p.stacked(
            'GPUs held by namespace and job',
            'The 20 that held the most at any time: who grew, and when.',
            'none',
            p.largest(sumBy('kpulse_allocation_held_gpus:rate5m'), byWhom, labels.legend(c, '{{workload_namespace}} {{hpc_job}}'))
          )),
          d.at(24, 8, p.timeseries(
            'Power of a GPU by namespace and job',
            'The mean of the GPUs that each holds; of the 20 with the most GPU-hours. If it falls and stays low while the job runs, the job hangs, or waits for data.',
            'watt',
            [p.query(
              q.among(
                '(%s)' % q.ratio(sumBy('kpulse_allocation_energy:rate5m'), sumBy('kpulse_allocation_held_gpus:rate5m')),
                'topk(20, sum by (%s) (sum_over_time(%s[$__range] @ end())))' % [byWhom, of('kpulse_allocation_held_gpus:rate5m')],
                byWhom
              ),
              labels.legend(c, '{{workload_namespace}} {{hpc_job}}')
            )]
          )),
        ]),
        d.row('Leagues', [
          d.at(24, 8, p.table(
            'Kubernetes workloads',
            'Deployments, jobs and the like of Kubernetes, the largest first.',
            'none',
            league('%s, workload_namespace, workload_kind, workload_name' % c.clusterLabel, ', workload_namespace!=""')
          ) + spent([['workload_namespace', 'Namespace'], ['workload_kind', 'Kind'], ['workload_name', 'Workload']]) + p.noValue('no Kubernetes workload')),
          d.at(24, 8, p.table(
            'Batch jobs',
            'Jobs of a batch system such as Slurm, the largest first.',
            'none',
            league('%s, hpc_job' % c.clusterLabel, ', hpc_job!=""')
          ) + spent([['hpc_job', 'Job']])),
          d.at(12, 10, p.table(
            'Users',
            'Users of a batch system, the largest first; the proxy needs --hpc-job-info-dir.',
            'none',
            league('%s, hpc_user' % c.clusterLabel, ', hpc_user!=""')
          ) + spent([['hpc_user', 'User']])),
          d.at(12, 10, p.table(
            'Accounts',
            'Accounts of a batch system, the largest first. Compare them with their fair shares.',
            'none',
            league('%s, hpc_account' % c.clusterLabel, ', hpc_account!=""')
          ) + spent([['hpc_account', 'Account']])),
        ]),
        d.row('Device by device', [
          d.at(24, 10, p.table(
                         'Devices held now',
                         'The least used devices, with their holders and free memory. If memory is nearly full, a larger batch will not fit; if it is nearly empty, a MIG instance may be enough.',
                         'none',
                         [
                           p.rows(ofLeast(held('kpulse_allocation_held_gpus:rate5m'))),
                           p.rows(ofLeast(utilization)),
                           p.rows(ofLeast('%s * 0 + on (%s) group_left () (1 - %s)' % [held('kpulse_allocation_held_gpus:rate5m'), labels.device(c), used])),
                         ]
                       ) + p.joined + p.sorted('Value #B', false) + p.renamed([
                         ['workload_namespace', 'Namespace'],
                         ['workload_pod', 'Pod'],
                         ['hpc_job', 'Job'],
                         [c.clusterLabel, 'Cluster'],
                         ['hostname', 'Host'],
                         ['gpu', 'GPU'],
                         ['mig_profile', 'MIG profile'],
                         ['uuid', 'UUID'],
                         ['Value #A', 'GPUs'],
                         ['Value #B', 'Real utilization'],
                         ['Value #C', 'Memory free'],
                       ]) + p.column('GPUs', { decimals: 2 })
                       + p.column('Real utilization', { unit: 'percentunit', decimals: 0 }) + p.column('Memory free', { unit: 'percentunit', decimals: 0 })),
        ]),
      ]
    ),
  },
}

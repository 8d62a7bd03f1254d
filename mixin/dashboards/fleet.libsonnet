// Fleet: what are the GPUs doing, and which one needs somebody?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local links = import '../lib/links.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local recorded = q.recorded(c),
  local stateCount(state) = 'count(%s == 1) or vector(0)' % q.board(c, 'kpulse_gpu_health', ', state="%s"' % state),
  local boardColumns = [[c.clusterLabel, 'Cluster'], ['hostname', 'Host'], ['gpu', 'GPU'], ['uuid', 'UUID']],

  grafanaDashboards+:: {
    'kpulse-fleet.json': d.new(
      c,
      'kpulse-fleet.json',
      'Fleet',
      'What are the GPUs doing, and which one needs somebody?',
      [v.datasource(c), v.cluster(c), v.hostname(c)],
      [
        d.row('Now', [
          d.at(3, 4, p.stat(
            'GPUs here / expected',
            'Boards that are there, beside those that the hosts have had within the hour or should have. Fewer than expected: open Health & reliability.',
            'none',
            [
              p.instant('sum(host:kpulse_gpus_present:count%s)' % recorded, 'here'),
              p.instant('sum(host:kpulse_gpus_expected:max1h%s)' % recorded, 'expected'),
            ]
          ) + colors.count),
          d.at(3, 4, p.stat(
            'Held',
            'GPUs that a pod or job holds. Far below what is here: the scheduler has work that does not fit, or there is none.',
            'none',
            [p.instant('sum(host:kpulse_allocation_held_gpus:rate5m%s)' % recorded)]
          ) + colors.count + p.decimals(1)),
          d.at(3, 4, p.stat(
            'Idle while held',
            'GPUs that somebody holds and that do nothing. Efficiency & waste says whose.',
            'none',
            [p.instant('sum(host:kpulse_allocation_idle_gpus:rate5m%s) or vector(0)' % recorded)]
          ) + colors.bad('yellow') + p.decimals(1) + p.links([links.to(c, 'kpulse-efficiency.json', 'Efficiency & waste')])),
          d.at(3, 4, p.stat(
            'Real utilization',
            'Of all GPUs, over the last 5 minutes. Low while GPU-Util is high: kernels run that leave the GPU empty; see Workload classes.',
            'percentunit',
            [p.instant('sum(host:kpulse_gpu_utilized_gpus:rate5m%s) / sum(host:kpulse_gpu_known_gpus:rate5m%s)' % [recorded, recorded])]
          ) + colors.good + p.range(0, 1)),
          d.at(2, 4, p.stat('Critical', 'Boards in state crit: drain them and follow the runbook of the alert.', 'none', [p.instant(stateCount('crit'))]) + colors.bad('red')),
          d.at(2, 4, p.stat('Warning', 'Boards in state warn: plan a reset or a look at the slot.', 'none', [p.instant(stateCount('warn'))]) + colors.bad('yellow')),
          d.at(2, 4, p.stat('Hot', 'Boards above the warning temperature of their model, or slowed down by heat: look at fans and airflow.', 'none', [p.instant(stateCount('hot'))]) + colors.bad('orange')),
          d.at(3, 4, p.stat(
            'Power',
            'All boards together, by their energy counters. Compare with what the racks may draw.',
            'watt',
            [p.instant('sum(host:kpulse_gpu_energy:rate5m%s)' % recorded)]
          ) + colors.count),
          d.at(3, 4, p.stat(
            'Idle cost a day',
            'Price of the GPUs that are held and idle, if the day goes on as it is.',
            c.currency,
            [p.instant('24 * %g * (sum(host:kpulse_allocation_idle_gpus:rate5m%s) or vector(0))' % [c.gpuHourPrice, recorded])]
          ) + colors.bad('yellow') + p.decimals(0)),
        ]),
        d.row('Over time', [
          d.at(12, 9, p.stacked(
            'What GPUs do',
            'GPUs by workload class. A growing grey band is idle time, green is busy without using the GPU well, orange waits for data.',
            'none',
            [p.query('sum by (class) (host:kpulse_gpu_class_gpus:rate5m%s)' % recorded, '{{class}}')]
          ) + colors.byClass),
          d.at(12, 9, p.timeseries(
            'Real utilization beside GPU-Util',
            'GPU-Util says that some kernel ran; the distance between the two lines is what it hides. A wide gap is a reason to profile jobs.',
            'percentunit',
            [
              p.query('sum(host:kpulse_gpu_utilized_gpus:rate5m%s) / sum(host:kpulse_gpu_known_gpus:rate5m%s)' % [recorded, recorded], 'real utilization'),
              p.query('avg(device:kpulse_gpu_nvml_utilization:avg5m%s)' % recorded, 'GPU-Util'),
            ]
          ) + p.range(0, 1)),
        ]),
        d.row('The worst first', [
          d.at(16, 12, p.table(
                         'GPUs',
                         'Every board, the sick ones first, then the idle ones. A click on the UUID opens the GPU.',
                         'none',
                         [
                           p.rows(q.severity(c)),
                           p.rows('avg by (%s) (device:kpulse_gpu_real_utilization:avg5m%s)' % [labels.board(c), recorded]),
                           p.rows('max by (%s) (device:kpulse_gpu_utilization_gap:avg5m%s)' % [labels.board(c), recorded]),
                           p.rows(q.board(c, 'kpulse_gpu_temperature_celsius')),
                           p.rows(q.board(c, 'kpulse_gpu_power_watts')),
                           p.rows(q.or0(q.board(c, 'kpulse_gpu_allocations'), '(%s == 1)' % q.board(c, 'kpulse_gpu_present'))),
                         ]
                       ) + p.joined + p.sorted('Value #B', false) + p.sorted('Value #A') + p.renamed(boardColumns + [
                         ['Value #A', 'Health'],
                         ['Value #B', 'Real utilization'],
                         ['Value #C', 'Gap to GPU-Util'],
                         ['Value #D', 'Temperature'],
                         ['Value #E', 'Power'],
                         ['Value #F', 'Holders'],
                       ]) + p.column('Health', { mappings: p.valueMappings(q.severities), 'custom.cellOptions': { type: 'color-text' } })
                       + p.column('Real utilization', { unit: 'percentunit', decimals: 0, min: 0, max: 1, 'custom.cellOptions': { type: 'gauge', mode: 'basic' } })
                       + p.column('Gap to GPU-Util', { unit: 'percentunit', decimals: 0 })
                       + p.column('Temperature', { unit: 'celsius' })
                       + p.column('Power', { unit: 'watt' })
                       + p.column('Host', { links: [links.host(c)] })
                       + p.column('UUID', { links: [links.gpu(c)] })),
          d.at(8, 12, p.table(
                        'Alerts',
                        'What fires now, what cannot wait first. The runbook of each says what to do.',
                        'none',
                        [p.rows('max by (alertname, severity, hostname, instance, gpu) (%s)' % q.ranked(
                          function(matcher) 'ALERTS{alertname=~"Kpulse.*", alertstate="firing", %s=~"$cluster", %s}' % [c.clusterLabel, matcher],
                          'severity',
                          [[c.criticalSeverity, 3]] + (if c.warningSeverity == c.criticalSeverity then [] else [[c.warningSeverity, 2]]),
                        ))]
                      ) + p.sorted('Value') + p.renamed([['alertname', 'Alert'], ['severity', 'Severity'], ['hostname', 'Host'], ['instance', 'Proxy'], ['gpu', 'GPU']])
                      + p.column('Host', { links: [links.host(c)] })),
        ]),
      ]
    ),
  },
}

// Node: what is wrong on this host, and what do its GPUs do? All boards of one host side by side.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local recorded = q.recorded(c),
  local board = labels.board(c),
  // An instance is named by profile and number; a board without MIG has no such labels.
  local gpu = 'GPU {{gpu}} {{mig_profile}} {{mig_instance}}',
  local devices(title, description, unit, name) = p.timeseries(title, description, unit, [p.query(q.device(c, name), gpu)]) + colors.byGPU,
  local boards(title, description, unit, name) = p.timeseries(title, description, unit, [p.query(q.board(c, name), 'GPU {{gpu}}')]) + colors.byGPU,
  // classes is the number of the class of each device: the states of its row of the timeline.
  local names = [class[0] for class in colors.classes],
  local classes = 'max by (gpu, mig_profile, mig_instance) (\n%s\n)' % std.join('\nor\n', [
    '0 * (kpulse_gpu_workload_class%s == 1) + %d' % [q.raw(c, ', class="%s"' % names[i]), i]
    for i in std.range(0, std.length(names) - 1)
  ]),
  // source selects the proxies that reported the host within the time range.
  local source(name) =
    'max by (%(of)s, source) (%(name)s%(only)s and on (%(of)s) last_over_time(kpulse_gpu_present%(raw)s[$__range]))'
    % { of: c.clusterLabel + ', instance', name: name, only: c.kpulseOnly, raw: q.raw(c) },
  // reported is when each proxy last reported the host within the time range.
  local reported = 'max by (%s, instance) (max_over_time(timestamp(kpulse_gpu_present%s)[$__range:1m]))' % [c.clusterLabel, q.raw(c)],
  // machine is a reading of the machine, which the lean form leaves to the proxy's own telemetry.
  local machine(name) = 'max by (%s) (kpulse_host_%s%s or kpulse_proxy_host_%s{%s, %s=~"$cluster", hostname=~"$hostname"})'
                        % [labels.host(c), name, q.raw(c), name, c.telemetrySelector, c.clusterLabel],
  local state(rank, more) = '%d * (kpulse_gpu_health_condition%s == 1)' % [rank, q.raw(c, ', state="%s"' % more)],

  grafanaDashboards+:: {
    'kpulse-node.json': d.new(
      c,
      'kpulse-node.json',
      'Node',
      'What is wrong on this host, and what are its GPUs doing?',
      [v.datasource(c), v.one(v.cluster(c)), v.one(v.hostname(c))],
      [
        d.row('Now', [
          d.at(4, 4, p.stat(
            'Worst health',
            'The state of its worst board; the table below shows which. Silent: its proxy cannot be scraped, or reads nothing.',
            'none',
            [p.instant('max(%s)' % q.severity(c))]
          ) + p.mappings(q.severities) + p.thresholds([[null, 'red']]) + p.noValue('silent')),
          d.at(5, 4, p.stat(
            'Here / expected',
            'Boards present, and boards that the host had in the last day or should have.',
            'none',
            incidents.hereOfExpected(c)
          ) + colors.count + p.colored('only here', 'red')),
          d.at(3, 4, p.stat('Held', 'GPUs of this host that a pod or job holds.', 'none', [p.instant('sum(host:kpulse_allocation_held_gpus:rate5m%s)' % recorded)]) + colors.count + p.decimals(1) + p.noValue('not read')),
          d.at(5, 4, p.stat(
            'Real utilization',
            'Of the GPUs of this host, over the last 5 minutes. ' + p.saturating,
            'percentunit',
            [p.instant(q.ratio('sum(host:kpulse_gpu_utilized_gpus:rate5m%s)' % recorded, 'sum(host:kpulse_gpu_known_gpus:rate5m%s)' % recorded))]
          ) + colors.good + p.range(0, 1) + p.noValue('not read')),
          d.at(4, 4, p.stat('Hottest', 'The hottest board now. If only one is hot, check its fan and seating; if all are, the airflow.', 'celsius', [p.instant('max(%s)' % q.board(c, 'kpulse_gpu_temperature_celsius'))]) + colors.count + p.noValue('not read')),
          d.at(3, 4, p.stat('Draw', 'All boards of the host together.', 'watt', [p.instant('sum(%s)' % q.board(c, 'kpulse_gpu_power_watts'))]) + colors.count + p.noValue('not read')),
          d.at(24, 4, p.table(
                        'Sources of the host',
                        'Whether the proxy can read the GPUs. If it is down or old, the panels below show old values. Silent: the proxy that last reported the host does not answer, or is no target of Prometheus any more.',
                        'none',
                        [
                          p.rows('%s\nor on (%s) -1 + 0 * %s' % [source('kpulse_source_up'), c.clusterLabel, reported]),
                          p.rows('time() - (%s\nor on (%s) %s)' % [source('kpulse_source_last_read_timestamp_seconds'), c.clusterLabel, reported]),
                        ]
                      ) + p.joined + p.renamed([[c.clusterLabel, 'Cluster'], ['instance', 'Proxy'], ['source', 'Source'], ['Value #A', 'Up'], ['Value #B', 'Age']])
                      + p.column('Age', { unit: 's' })
                      + p.column('Up', { mappings: p.valueMappings({ '-1': { text: 'silent', color: 'red' }, '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } }), 'custom.cellOptions': { type: 'color-text' } })),
        ]),
        d.row('Side by side', [
          d.at(24, 10, p.table(
                         'GPUs of the host',
                         'Every board, including those that are gone. Click a UUID to open the GPU.',
                         'none',
                         [
                           p.rows(q.severity(c)),
                           p.rows('max by (%s, class) (kpulse_gpu_workload_class%s == 1)' % [board, q.raw(c, ', mig_instance=""')]),
                           p.rows('avg by (%s) (%s)' % [board, q.device(c, 'kpulse_gpu_real_utilization_ratio')]),
                           p.rows(q.board(c, 'kpulse_gpu_nvml_utilization_ratio')),
                           p.rows(q.ratio('sum by (%s) (%s)' % [board, q.device(c, 'kpulse_gpu_framebuffer_used_bytes')], 'sum by (%s) (%s)' % [board, q.device(c, 'kpulse_gpu_framebuffer_total_bytes')])),
                           p.rows(q.board(c, 'kpulse_gpu_temperature_celsius')),
                           p.rows(q.board(c, 'kpulse_gpu_power_watts')),
                           p.rows(q.holders(c)),
                           p.rows(q.or0('count by (%s) (max by (%s, condition) (kpulse_gpu_health_condition%s == 1))' % [board, board, q.raw(c)], '(%s == 1)' % q.board(c, 'kpulse_gpu_present'))),
                           p.rows('max by (%s, action) (kpulse_gpu_recommended_action%s == 1)' % [board, q.raw(c, ', action!="none"')]),
                         ]
                       ) + p.joined + p.sorted('gpu', false) + p.renamed([
                         [c.clusterLabel, 'Cluster'],
                         ['gpu', 'GPU'],
                         ['uuid', 'UUID'],
                         ['Value #A', 'Health'],
                         ['action', 'What to do'],
                         ['class', 'Class'],
                         ['Value #C', 'Real utilization'],
                         ['Value #D', 'GPU-Util'],
                         ['Value #E', 'Memory used'],
                         ['Value #F', 'Temperature'],
                         ['Value #G', 'Power'],
                         ['Value #H', 'Holders'],
                         ['Value #I', 'Conditions'],
                       ]) + p.column('Health', { mappings: p.valueMappings(q.severities), 'custom.cellOptions': { type: 'color-text' } })
                       + p.column('Real utilization', colors.share)
                       + p.column('GPU-Util', { unit: 'percentunit', decimals: 0 })
                       + p.column('Memory used', { unit: 'percentunit', decimals: 0 })
                       + p.column('Temperature', { unit: 'celsius' })
                       + p.column('Power', { unit: 'watt' }) + p.noValue('no board is read')),
          d.at(12, 8, devices('Real utilization of each GPU', 'GPUs of one job should be close together; one far below the others makes them wait.', 'percentunit', 'kpulse_gpu_real_utilization_ratio') + p.range(0, 1)),
          d.at(12, 8, p.stateTimeline(
            'Class of each GPU',
            'The class at each reading. If all rows change color together, the whole job waits.',
            'none',
            [p.query(classes, gpu)]
          ) + p.mappings({ ['%d' % i]: { text: names[i], color: colors.classes[i][1] } for i in std.range(0, std.length(names) - 1) })),
          d.at(8, 8, boards('Temperature of each GPU', 'If one board departs from the others, check its fan and seating.', 'celsius', 'kpulse_gpu_temperature_celsius')),
          d.at(8, 8, boards('Power of each GPU', 'Boards of one job draw similar power; one that draws less is throttled or waits.', 'watt', 'kpulse_gpu_power_watts')),
          d.at(8, 8, devices('Memory of each GPU', 'Device memory in use. If memory is full while the GPU is idle, a process was left behind.', 'bytes', 'kpulse_gpu_framebuffer_used_bytes')),
          d.at(24, 6, p.timeseries(
            'CPU and memory of the host',
            'Shares in use, by all processes. If the CPUs are busy while the GPUs wait for data, jobs need more of them. Needs --series=full or a scrape of /-/metrics, and a proxy on the host.',
            'percentunit',
            [
              p.query(machine('cpu_utilization_ratio'), 'CPUs'),
              p.query('1 - %s\n/ on (%s)\n%s' % [machine('memory_available_bytes'), labels.host(c), machine('memory_total_bytes')], 'memory'),
            ]
          ) + p.range(0, 1) + p.lines([['CPUs', 'blue'], ['memory', 'purple']]) + p.noValue('not read')),
          d.at(24, 7, p.stateTimeline(
            'Conditions of each GPU',
            'Raised conditions of each GPU: red makes the board crit, orange warn, yellow hot. "gone": the board is missing.',
            'none',
            [
              p.query('max by (gpu, condition) (\n%s\n)' % std.join('\nor\n', [state(3, 'crit'), state(2, 'warn'), state(1, 'hot')]), 'GPU {{gpu}} {{condition}}'),
              p.query('4 + 0 * max by (gpu) (device:kpulse_gpu_gone:timestamp%s)' % recorded, 'GPU {{gpu}} gone'),
              p.query('0 * max by (gpu) (kpulse_gpu_health_conditions_read%s)\nunless on (gpu) max by (gpu) (kpulse_gpu_health_condition%s == 1)' % [q.raw(c), q.raw(c)], 'GPU {{gpu}} well'),
            ]
          ) + p.mappings({
            '0': { text: 'no condition', color: 'transparent' },
            '1': { text: 'raised', color: colors.hot },
            '2': { text: 'raised', color: 'orange' },
            '3': { text: 'raised', color: 'red' },
            '4': { text: 'gone', color: 'red' },
          })),
        ]),
        d.row('What went wrong', [
          d.at(24, 7, incidents.alerts(c)),
          d.at(24, 5, incidents.missingBoards(c)),
          d.at(24, 5, incidents.xidBoards(c)),
        ]),
        d.row('Who holds its GPUs', [
          d.at(24, 7, p.table(
            'Holders',
            'Pods and jobs on the host in the time range, the latest first.',
            'none',
            [p.rows(q.or0(
              'max by (%s, %s) (kpulse_allocation_info%s)' % [labels.device(c), labels.holder(c), q.raw(c)],
              'max by (%s, %s) (last_over_time(kpulse_allocation_info%s[$__range]))' % [labels.device(c), labels.holder(c), q.raw(c)]
            ))]
          ) + p.sorted('gpu', false) + p.sorted('Value') + p.renamed([
            [c.clusterLabel, 'Cluster'],
            ['gpu', 'GPU'],
            ['uuid', 'UUID'],
            ['mig_profile', 'MIG profile'],
            ['workload_namespace', 'Namespace'],
            ['workload_pod', 'Pod'],
            ['workload_kind', 'Kind'],
            ['workload_name', 'Workload'],
            ['hpc_job', 'Job'],
            ['Value', 'Holds it'],
          ]) + p.column('Holds it', { mappings: p.valueMappings({ '0': { text: 'no longer' }, '1': { text: 'now' } }) })),
        ]),
      ]
    ),
  },
}

// Power & thermal: is any GPU too hot or throttled, and how much power do the GPUs draw?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local recorded = q.recorded(c),
  // The ten boards that came nearest to their limit in the last hour of the range: a maximum over the whole range would read every
  // board's samples twice. The limit is the one in force at the end, since it rarely changes.
  local board = labels.board(c),
  local draw = 'device:kpulse_gpu_energy:rate5m' + recorded,
  local limit = 'max by (%s) (last_over_time(kpulse_gpu_power_limit_watts%s[1h] @ end()))' % [board, q.raw(c)],
  local nearest = 'topk(10, max_over_time(%s[1h] @ end()) / on (%s) %s)' % [draw, board, limit],
  local ofLimit = '(%s)\n/ on (%s)\n(%s)' % [q.among(draw, nearest, board), board, q.among(limit, nearest, board)],
  local largest(series, by, legend) = p.largest('sum by (%s) (%s)' % [by, series], by, legend),

  grafanaDashboards+:: {
    'kpulse-power.json': d.new(
      c,
      'kpulse-power.json',
      'Power & thermal',
      'Is anything too hot or throttled, and how much power do the GPUs draw?',
      [v.datasource(c), v.cluster(c), v.hostname(c)],
      [
        d.row('Now', [
          d.at(4, 4, p.stat('Power draw', 'All boards together. Compare it with the power budget of the racks.', 'watt', [p.instant('sum(host:kpulse_gpu_energy:rate5m%s)' % recorded)]) + colors.count),
          d.at(5, 4, p.stat('Energy used', 'By all boards in the time range.', 'kwatth', [p.instant('sum(sum_over_time(host:kpulse_gpu_energy:rate5m%s[$__range])) * 60 / 3.6e6' % recorded)]) + colors.count + p.decimals(1)),
          d.at(5, 4, p.stat(
            'Energy/used hour',
            'Energy used per fully utilized GPU-hour. It falls as fewer hours are unused.',
            'kwatth',
            [p.instant(q.ratio('sum(sum_over_time(host:kpulse_gpu_energy:rate5m%s[$__range])) / 1000' % recorded, 'sum(sum_over_time(host:kpulse_gpu_utilized_gpus:rate5m%s[$__range]))' % recorded))]
          ) + colors.count + p.decimals(0)),
          d.at(5, 4, p.stat('Slowed by heat', 'Boards that heat is throttling now. Check fans and airflow.', 'none', [p.instant('count(max by (%s) (kpulse_gpu_clock_event_active%s) == 1) or vector(0)' % [labels.board(c), q.raw(c, ', reason=~"sw_thermal|hw_thermal"')])]) + colors.bad(colors.hot)),
          d.at(5, 4, p.stat('Slowed by brake', 'Boards with an active power brake. Check the power supplies and the rack.', 'none', [p.instant('count(%s == 1) or vector(0)' % q.board(c, 'kpulse_gpu_clock_event_active', ', reason="hw_power_brake"'))]) + colors.bad('orange')),
        ]),
        d.row('Power', [
          d.at(12, 9, p.stacked('Power by host', 'The 20 hosts that drew the most at any time. A host that draws much less than similar hosts is idle or broken.', 'watt', largest('host:kpulse_gpu_energy:rate5m' + recorded, labels.host(c), labels.legend(c, '{{hostname}}')))),
          d.at(12, 9, p.stacked(
            'Power by namespace and job',
            'The 20 that drew the most at any time, estimated from their activity on the boards, or from their share of them.',
            'watt',
            largest('holder:kpulse_allocation_energy:rate5m' + q.cluster(c), '%s, workload_namespace, hpc_job' % c.clusterLabel, labels.legend(c, '{{workload_namespace}} {{hpc_job}}'))
          )),
          d.at(24, 8, p.timeseries(
            'Power against the limit',
            'The ten boards that came nearest to the limit in force in the last hour of the range. Reaching it under full load is normal; a limit lower than that of the others is not.',
            'percentunit',
            [p.query(ofLimit, labels.legend(c, '{{hostname}} GPU {{gpu}}'))]
          )),
        ]),
        d.row('Heat', [
          d.at(12, 9, p.floating(
            'Distance to the warning temperature',
            'The ten boards nearest to the warning temperature of their model; below 0 is hot.',
            'celsius',
            [p.query(q.lowest(10, 'device:kpulse_gpu_temperature_headroom:min5m' + recorded, labels.board(c)), labels.legend(c, '{{hostname}} GPU {{gpu}}'))]
          )),
          d.at(12, 9, p.table(
            'Hottest boards',
            'The 20 hottest, with GPU and memory temperature. If one board of a host is hot, check its fan and seating; if all are, the airflow.',
            'celsius',
            [p.rows('topk(20, %s)' % q.board(c, 'kpulse_gpu_temperature_celsius')), p.rows('%s\nand on (%s)\ntopk(20, %s)' % [q.board(c, 'kpulse_gpu_memory_temperature_celsius'), labels.board(c), q.board(c, 'kpulse_gpu_temperature_celsius')])]
          ) + p.joined + p.sorted('Value #A') + p.renamed(labels.columns(c) + [['Value #A', 'GPU temperature'], ['Value #B', 'Memory temperature']])),
        ]),
        d.row('Throttling', [
          d.at(12, 9, p.timeseries(
            'Throttled share of busy time',
            'Of the busy time of all boards, by reason; reasons overlap. "power" is normal under full load.',
            'percentunit',
            [p.query(
              'clamp_max(sum by (reason) (device:kpulse_gpu_throttled:rate5m%s)\n/ on () group_left ()\n(sum(host:kpulse_gpu_class_gpus:rate5m%s) > 0), 1)' % [recorded, q.recorded(c, ', class!~"idle|unknown"')],
              '{{reason}}'
            )]
          ) + p.range(0, 1) + colors.byReason),
          d.at(12, 9, p.table(
                        'GPU-hours of throttling by board',
                        'How long each board was throttled in the time range, by reason; the 20 longest.',
                        'h',
                        [p.rows('topk(20, max by (%s, reason) (sum_over_time(device:kpulse_gpu_throttled:rate5m%s[$__range]))) / 60' % [labels.board(c), recorded])]
                      ) + p.sorted('Value') + p.renamed(labels.columns(c) + [['reason', 'Reason'], ['Value', 'GPU-hours']])
                      + p.decimals(2)),
        ]),
      ]
    ),
  },
}

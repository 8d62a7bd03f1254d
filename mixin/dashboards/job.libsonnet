// Job: what does one job do with its GPUs, and what does it leave unused? All queries over the time range read only
// series of the job, or of its hosts.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

local advice = (import '../lib/classes.json') {
  stalled: 'It hung: all of its boards look busy, and none works. Save the stacks of its processes (py-spy dump), then restart it from its last checkpoint.',
  'unused boards': 'These boards did next to nothing. Request fewer, or start a process on each.',
  stragglers: 'These boards stay below half of the median of the job, and the others wait for them. Look at their health, clocks and share of the work.',
  'little memory': 'No board ever had a quarter of its memory in use: a larger batch fits, or a smaller GPU or a MIG instance may be enough.',
};

{
  local c = $._config,
  local board = labels.board(c),
  local device = labels.device(c),
  local mine = q.ofJob(c),
  local holder(what, more='') = 'holder:kpulse_allocation_%s:rate5m%s' % [what, q.ofJob(c, more)],
  local total(what, more='') = 'sum(sum_over_time(%s[$__range]))' % holder(what, more),
  local gang(name) = 'gang:kpulse_allocation_%s%s' % [name, mine],
  local held = 'allocation:kpulse_allocation_held_gpus:rate5m' + mine,

  // sums adds up what was recorded of each device within the range.
  local sums(what, by=device, more='') = 'sum by (%s) (sum_over_time(allocation:kpulse_allocation_%s:rate5m%s[$__range] @ end()))' % [by, what, q.ofJob(c, more)],
  local utilization = q.ratio(sums('utilized_gpus'), sums('known_gpus')),
  local ofMedian(least) = '%s\n/\nscalar(quantile(0.5, %s) %s)' % [utilization, utilization, least],
  // The least used devices, those of unknown utilization last: the rows of the table, and the lines of the charts.
  local ranked = '%s\nor\n0 * %s + 2' % [utilization, sums('held_gpus')],
  local rows = q.least(ranked),
  local ofRows(query, by=device) = q.among(query, rows, by),
  local lines = 20,
  local ofLines(query, by=device) = q.among(query, 'bottomk(%d, %s)' % [lines, ranked], by),
  // whileHeld limits series of devices, or boards, to the time for which the job held them. over applies a function
  // to series over that time.
  local whileHeld(query, by=device) = '%s\nand on (%s)\n%s' % [query, by, held],
  local over(how, series, by=device) = '%s_over_time((%s)[$__range:$__interval])' % [how, whileHeld(series, by)],

  local ofBoard = labels.legend(c { showMultiCluster: false }, '{{hostname}} GPU {{gpu}}'),
  local ofDevice = ofBoard + ' {{mig_profile}} {{mig_instance}}',
  local shown = ' Shows the %d least used boards of the time range.' % lines,
  local chart(title, description, unit, query, by, legend) = p.timeseries(title, description + shown, unit, [p.query(whileHeld(ofLines(query, by), by), legend)]),

  local nvml = 'device:kpulse_gpu_nvml_utilization:avg5m' + q.recorded(c),
  local meanNVML = 'max by (%s) (%s)' % [device, over('avg', nvml)],
  local peak = 'max by (%(device)s) (%(used)s)\n/ on (%(device)s)\nmax by (%(device)s) (last_over_time(kpulse_gpu_framebuffer_total_bytes%(raw)s[$__range:$__interval]))'
               % { device: device, used: over('max', 'kpulse_gpu_framebuffer_used_bytes' + q.raw(c)), raw: q.raw(c) },
  local nvlink = '(%s + %s or %s)' % [q.board(c, 'kpulse_gpu_nvlink_transmit_bytes_per_second'), q.board(c, 'kpulse_gpu_nvlink_receive_bytes_per_second'), q.board(c, 'kpulse_gpu_nvlink_bytes_per_second')],
  local raised = whileHeld('max by (%s, condition) (\n%s\n)' % [board, std.join('\nor\n', [
    '%d * (kpulse_gpu_health_condition%s == 1)' % [rank[1], q.raw(c, ', state="%s"' % rank[0])]
    for rank in [['crit', 3], ['warn', 2], ['hot', 1]]
  ])], board),
  local names = [class[0] for class in colors.classes],
  // numbered multiplies series of 1 by a number for each value of a label, in one pass over them.
  local numbered(query, label, numbers) = '(%s) * on (%s) group_left () (%s)' % [query, label, std.join(' or ', [
    'label_replace(vector(%g), "%s", "%s", "", "")' % [n[1], label, n[0]]
    for n in numbers
  ])],
  local classes = 'max by (%s) (%s)' % [device, numbered(
    ofLines('kpulse_gpu_workload_class%s == 1' % q.raw(c)), 'class', [[names[i], i] for i in std.range(0, std.length(names) - 1)]
  )],
  // The worst state of each board while the job held it; the rules keep who held a board that is gone.
  local health(more) = 'device:kpulse_gpu_health:rate5m' + q.recorded(c, more),
  local worst = '4 * max by (%(board)s) (last_over_time(allocation:kpulse_allocation_gone:info%(mine)s[$__range]))\nor\nmax by (%(board)s) (%(sick)s)\nor\n0 * max by (%(board)s) (last_over_time(%(well)s[$__range]))' % {
    board: board,
    mine: mine,
    sick: numbered(over('max', health(', state!="ok"'), board) + ' ^ 0', 'state', [['crit', 3], ['warn', 2], ['hot', 1], ['unknown', 0.5]]),
    well: health(', state="ok"'),
  },

  // Machines: in the lean form their load is on /-/metrics.
  local machine(name) = 'max by (%s) (kpulse_%s%s or kpulse_proxy_%s{%s, %s=~"$cluster", hostname=~"$hostname"})'
                        % [labels.host(c), name, q.raw(c), name, c.telemetrySelector, c.clusterLabel],
  local hosts(title, description, query) = p.timeseries(
    title,
    description + ' Known where the proxy runs on the host itself. Shows the %d highest.' % lines,
    'percentunit',
    [p.query(q.highest(lines, whileHeld(query, labels.host(c)), labels.host(c)), '{{hostname}}')]
  ) + p.range(0, 1) + p.noValue('not read'),

  // found is a row of the advice: what was found, and the GPU-hours that it is about.
  local found(what, hours, first=2) = 'label_replace(label_replace(%s, "found", "%s", "", ""), "first", "%d", "", "")' % [hours, what, first],
  local hoursOf(which) = 'sum(%s / 60 and on (%s) (%s))' % [sums('held_gpus'), device, which],

  local textIs(map) = { mappings: p.valueMappings(map), 'custom.cellOptions': { type: 'color-text' } },

  grafanaDashboards+:: {
    'kpulse-job.json': d.new(
      c,
      'kpulse-job.json',
      'Job',
      'What does this job do with its GPUs, and what does it leave unused?',
      [v.datasource(c), v.one(v.cluster(c))] + v.jobParts(c),
      [
        d.row('In the time range', [
          d.at(8, 3, p.stat(
            'State',
            'Stalled: every board is busy by NVML, but none works; see the runbook of KpulseJobStalled. Ended: it held GPUs within the time range.',
            'none',
            [p.instant('max(2 + 0 * %s)\nor\nmax(1 + 0 * %s)\nor\nmax(0 * last_over_time(%s[$__range]))' % [gang('stalled_power:ratio5m'), holder('held_gpus'), holder('held_gpus')])]
          ) + colors.count + p.mappings({ '0': { text: 'ended', color: 'text' }, '1': { text: 'holds GPUs', color: 'text' }, '2': { text: 'STALLED', color: 'red' } }) + p.noValue('not in this time range')),
          d.at(8, 3, p.stat(
            'GPUs and hosts',
            'Boards or MIG instances that it held, and the hosts that they are on.',
            'none',
            [p.instant('count(%s)' % sums('held_gpus'), 'GPUs'), p.instant('count(%s)' % sums('held_gpus', labels.host(c)), 'hosts')]
          ) + colors.count),
          d.at(8, 3, p.stat(
            'Real utilization',
            'Of the time for which it was known. No work reaches 100 %: on an H200 a large matrix product reaches 77 %, a copy 61 %, a kernel without tensor cores 44 %.',
            'percentunit',
            [p.instant(q.ratio(total('utilized_gpus'), total('known_gpus')))]
          ) + colors.good + p.range(0, 1) + p.noValue('not read')),
          d.at(6, 3, p.stat(
            'GPU-Util',
            'What nvidia-smi calls utilization: the share of time in which some kernel ran. If it is far above real utilization, the kernels use little of the GPUs.',
            'percentunit',
            [p.instant('avg(%s)' % meanNVML)]
          ) + colors.count + p.range(0, 1) + p.noValue('not read')),
          d.at(6, 3, p.stat('GPU-hours', 'GPUs times the hours for which they were held.', 'none', [p.instant(total('held_gpus') + ' / 60')]) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat(
            'Unused GPU-hours',
            'GPU-hours times the part of the GPUs that was not utilized. Some of it cannot be used: see Real utilization.',
            'none',
            [p.instant('%s / 60 * (1 - %s)' % [total('held_gpus'), q.ratio(total('utilized_gpus'), total('known_gpus'))])]
          ) + colors.count + p.decimals(1)),
          d.at(6, 3, p.stat('Energy', 'Estimated from its activity on the boards, or from its share of them.', 'kwatth', [p.instant(total('energy') + ' * 60 / 3.6e6')]) + colors.count + p.decimals(1)),
          d.at(24, 4, p.table(
            'Whose',
            'The owner of the job, and where it runs. User and account are known with --hpc-job-info-dir.',
            'none',
            [p.rows('max by (%s, workload_namespace, workload_kind, workload_name, hpc_job, hpc_user, hpc_account) (last_over_time(%s[$__range]))' % [c.clusterLabel, holder('held_gpus')])]
          ) + p.renamed([
            [c.clusterLabel, 'Cluster'],
            ['workload_namespace', 'Namespace'],
            ['workload_kind', 'Kind'],
            ['workload_name', 'Workload'],
            ['hpc_job', 'Job'],
            ['hpc_user', 'User'],
            ['hpc_account', 'Account'],
            ['Value', 'GPUs'],
          ]) + p.column('GPUs', { decimals: 1 })),
        ]),
        d.row('What it means', [
          d.at(24, 10, p.table(
                         'What to change',
                         'What is wrong, then what the job did, by GPU-hours, with what it means and what to do about it. Classes add up to the hours held; the other rows are about some of them.',
                         'none',
                         [p.rows('label_replace(\n%s, "advice", "$1", "found", "(.+)")' % std.join('\nor\n', [
                           'label_replace(sum by (class) (%s), "found", "$1", "class", "(.+)")' % q.gpuHours(holder('class_gpus')),
                           found('stalled', 'sum(count_over_time(%s[$__range])) / 60 * max(max_over_time(%s[$__range]))' % [gang('stalled_power:ratio5m'), holder('held_gpus')], first=1),
                           found('unused boards', hoursOf('%s < %g' % [utilization, c.idleUtilizationThreshold])),
                           found('stragglers', hoursOf('%s < 0.5 and on () count(%s) >= 4 unless on () %s' % [ofMedian('>= 0.2'), utilization, 'allocation:kpulse_allocation_held_gpus:rate5m' + q.ofJob(c, ', workload_kind=~"%s"' % q.services)])),
                           found('little memory', 'sum(%s / 60) and max(%s) < 0.25' % [sums('held_gpus'), peak]),
                         ]))]
                       ) + p.sorted('Value') + p.sorted('first', false) + p.renamed([['found', 'What'], ['Value', 'GPU-hours'], ['advice', 'What it means and what to do']])
                       + p.column('What', { 'custom.width': 190 } + textIs({ [class[0]]: { color: class[1] } for class in colors.classes } + { stalled: { color: 'red' }, 'unused boards': { color: 'orange' }, stragglers: { color: 'orange' }, 'little memory': { color: colors.hot } }) + { 'custom.cellOptions': { type: 'color-background', mode: 'basic' } })
                       + p.column('GPU-hours', { decimals: 1 })
                       + p.column('What it means and what to do', { 'custom.wrapText': true, mappings: p.valueMappings({ [name]: { text: advice[name] } for name in std.objectFields(advice) }) })
                       + { options+: { cellHeight: 'lg' } }),  // room for two lines
          d.at(24, 6, incidents.alerts(c) + { description+: ' Of the job and of its hosts.' }),
        ]),
        d.row('Board by board', [
          d.at(24, 11, p.table(
                         'Boards of the job',
                         'Side by side, the least used first. A board far below the median makes the others wait: look at its health, clocks and links.',
                         'none',
                         [
                           p.rows(ofRows(utilization)),
                           p.rows(ofRows(ofMedian('> 0'))),
                           p.rows(ofRows(meanNVML)),
                           p.rows(ofRows('topk by (%s) (1, %s)' % [device, sums('class_gpus', device + ', class')])),
                           p.rows(ofRows(peak)),
                           p.rows(ofRows(q.ratio(sums('energy'), sums('held_gpus')))),
                           p.rows(ofRows(worst, board)),
                           p.rows(ofRows(sums('held_gpus') + ' / 60')),
                           p.rows(ofRows(sums('energy') + ' * 60 / 3.6e6')),
                         ]
                       ) + p.joined + p.sorted('Value #A', false) + p.renamed(labels.columns(c) + [
                         ['mig_profile', 'MIG profile'],
                         ['Value #A', 'Real utilization'],
                         ['Value #B', 'Of the median'],
                         ['Value #C', 'GPU-Util'],
                         ['class', 'Mostly'],
                         ['Value #E', 'Peak memory'],
                         ['Value #F', 'Power'],
                         ['Value #G', 'Worst health'],
                         ['Value #H', 'GPU-hours'],
                         ['Value #I', 'Energy'],
                       ]) + p.column('Real utilization', colors.share)
                       + p.column('Of the median', { unit: 'percentunit', decimals: 0, color: { mode: 'thresholds' }, thresholds: p.steps([[null, 'orange'], [0.5, 'text']]), 'custom.cellOptions': { type: 'color-text' } })
                       + p.column('GPU-Util', { unit: 'percentunit', decimals: 0 })
                       + p.column('Peak memory', { unit: 'percentunit', decimals: 0 })
                       + p.column('Power', { unit: 'watt' })
                       + p.column('Worst health', textIs(q.severities))
                       + p.column('GPU-hours', { decimals: 1 })
                       + p.column('Energy', { unit: 'kwatth', decimals: 1 })),
          d.at(24, 12, p.stateTimeline(
            'Class of each board',
            'The class at each reading. If all rows change color together, the whole job waits.' + shown,
            'none',
            [p.query(whileHeld(classes), ofDevice)]
          ) + p.mappings({ ['%d' % i]: { text: names[i], color: colors.classes[i][1] } for i in std.range(0, std.length(names) - 1) })),
          d.at(24, 6, p.stateTimeline(
            'Conditions of its boards',
            'Raised conditions while the job held the board: red makes it crit, orange warn, yellow hot. Shows the %d worst.' % lines,
            'none',
            [p.query(q.highest(lines, raised, board + ', condition'), ofBoard + ' {{condition}}')]
          ) + p.mappings(colors.raised) + p.noValue('none was raised')),
        ]),
        d.row('Over time', [
          d.at(12, 8, p.stacked(
            'What its GPUs do',
            'GPUs held, by workload class, idle at the bottom. Orange waits for data, teal is busy but uses the GPU poorly.',
            'none',
            p.idleFirst(function(matcher) 'sum by (class) (%s)' % holder('class_gpus', ', ' + matcher))
          ) + colors.byClass),
          d.at(12, 8, p.timeseries(
            'Real utilization beside GPU-Util',
            'Of all of its GPUs. GPU-Util only shows that some kernel ran. A wide gap calls for a profiler; if both fall at regular times, look at checkpoints and evaluation.',
            'percentunit',
            [p.query(q.ratio('sum(%s)' % holder('utilized_gpus'), 'sum(%s)' % holder('known_gpus')), 'real utilization'), p.query('avg(%s)' % whileHeld(nvml), 'GPU-Util')]
          ) + p.range(0, 1)),
          d.at(12, 8, p.timeseries(
            'Real utilization of each board',
            'The boards of one job should be close together; one far below the others makes them wait.' + shown,
            'percentunit',
            [p.query(q.ratio(
              'sum by (%s) (%s)' % [device, ofLines('allocation:kpulse_allocation_utilized_gpus:rate5m' + mine)],
              'sum by (%s) (%s)' % [device, ofLines('allocation:kpulse_allocation_known_gpus:rate5m' + mine)]
            ), ofDevice)]
          ) + p.range(0, 1)),
          d.at(12, 8, chart('Power of each board', 'Boards of one job draw similar power; one that draws less waits or is throttled. If all fall at once, the job waits or hangs.', 'watt', 'max by (%s) (device:kpulse_gpu_energy:rate5m%s)' % [board, q.recorded(c)], board, ofBoard)),
          d.at(12, 8, chart('Memory of each board', 'Device memory in use. If it grows without end, the job will run out of it; if little is used, a larger batch fits.', 'bytes', q.device(c, 'kpulse_gpu_framebuffer_used_bytes'), device, ofDevice)),
          d.at(12, 8, chart('NVLink traffic of each board', 'Both ways. If it stays at 0 in a job of several GPUs, they communicate over something slower; if one board falls behind, look at its links.', 'Bps', nvlink, board, ofBoard)),
        ]),
        d.row('Hosts', [
          d.at(12, 7, hosts('CPU of its hosts', 'Of all processes on the host. If it is near 100 % while the GPUs wait for data, give the job more cores.', machine('host_cpu_utilization_ratio'))),
          d.at(12, 7, hosts('Memory of its hosts', 'The share that new work cannot use. Near 100 %, the kernel ends processes.', '1 - %s\n/ on (%s)\n%s' % [machine('host_memory_available_bytes'), labels.host(c), machine('host_memory_total_bytes')])),
          d.at(24, 6, incidents.xidBoards(c)),
        ]),
      ]
    ),
  },
}

// GPU: is this GPU healthy, and what is it doing? One board with its MIG instances.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  // The uuid alone is enough: it is unique.
  local raw(more='') = '{%suuid="$gpu"%s}' % [c.kpulseMatchers, more],
  local device(name, more='') = 'max by (%s) (%s%s)' % [labels.device(c), name, raw(more)],
  local board(name, more='') = 'max by (%s) (%s%s)' % [labels.board(c), name, raw(more)],
  local by(label, name, more='') = 'max by (%s, %s) (%s%s)' % [labels.board(c), label, name, raw(more)],
  // was0 is a query with 0 for series of another that had samples within the range, while the board is present: of
  // a board that is gone, nothing is known to be clear.
  local was0(query, label, name) = q.or0(query, '(max by (%(board)s, %(label)s) (last_over_time(%(name)s%(raw)s[$__range])) and on (%(board)s) %(present)s == 1)' % {
    board: labels.board(c),
    label: label,
    name: name,
    raw: raw(),
    present: board('kpulse_gpu_present'),
  }),
  // held is `by`, with 0 for series that held at some time in the range and do not hold now. With orNone,
  // "none" is -1 if a board had readable inputs and nothing holds, so that the timeline of a healthy board is
  // not empty.
  local held(label, name) = was0(by(label, name), label, name),
  local orNone(query, label, name) = '%s\nor\nlabel_replace(-1 + 0 * %s, "%s", "none", "", "") unless on (%s) %s == 1' % [
    query,
    board('kpulse_gpu_health_conditions_read'),
    label,
    labels.board(c),
    by(label, name),
  ],
  // Every legend names an instance by profile and number; a board without MIG has no such labels.
  local mig = ' {{mig_profile}} {{mig_instance}}',
  // ratio is a chart of activities, by list of [name, legend, color]. For a board with MIG it shows the mean of
  // each profile's instances: seven instances would make 35 lines.
  local ratio(title, description, list) = p.timeseries(
    title,
    description,
    'percentunit',
    [p.query('avg by (%s, mig_profile) (%s)' % [labels.board(c), device(item[0])], item[1] + ' {{mig_profile}}') for item in list]
  ) + p.range(0, 1) + p.lines([[item[1], item[2]] for item in list]),
  // classNumbers returns one series per device, the number of its class at each reading: the states of a row of
  // the timeline. The dominant class of five minutes would hide a stall of two.
  local names = [class[0] for class in colors.classes],
  local classNumbers = 'max by (mig_profile, mig_instance) (\n%s\n)' % std.join('\nor\n', [
    '0 * (kpulse_gpu_workload_class%s == 1) + %d' % [raw(', class="%s"' % names[i]), i]
    for i in std.range(0, std.length(names) - 1)
  ]),
  // raised is the rank of the state that a condition raises, and 0 for conditions that were raised at some time
  // in the range and are not raised now.
  local raised = was0(
    'max by (%s, condition) (\n%s\n)' % [labels.board(c), std.join('\nor\n', [
      '%d * (kpulse_gpu_health_condition%s == 1)' % [rank[1], raw(', state="%s"' % rank[0])]
      for rank in [['crit', 3], ['warn', 2], ['hot', 1]]
    ])],
    'condition',
    'kpulse_gpu_health_condition'
  ),
  // slowed is 2 for a reason that means trouble, 1 for other reasons, and 0 as in raised.
  local trouble = 'hw_slowdown|sw_thermal|hw_thermal|hw_power_brake',
  local slowed = was0(
    'max by (%s, reason) (\n2 * (kpulse_gpu_clock_event_active%s == 1)\nor\nkpulse_gpu_clock_event_active%s == 1\n)'
    % [labels.board(c), raw(', reason=~"%s"' % trouble), raw(', reason!~"%s"' % trouble)],
    'reason',
    'kpulse_gpu_clock_event_active'
  ),

  grafanaDashboards+:: {
    'kpulse-gpu.json': d.new(
      c,
      'kpulse-gpu.json',
      'GPU',
      'Is this GPU healthy, and what is it doing?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.gpu(c, multi=false)],
      [
        d.row('Now', [
          d.at(4, 4, p.stat(
            'Health',
            'The worst raised condition. The timeline below names it; the runbook of its alert says what to do. Gone: the GPU no longer appears in the readings.',
            'none',
            [p.instant(q.severity(c, ', uuid="$gpu"'))]
          ) + p.mappings(q.severities) + p.thresholds([[null, 'red']]) + p.noValue('gone')),
          d.at(4, 4, p.stat(
            'Last XID',
            'Code of the last error that the driver reported in the time range. It stays until the exporter restarts; XIDs by code, below, shows whether it is new.',
            'none',
            [p.instant('max by (%s) (last_over_time(kpulse_gpu_xid_last%s[$__range]))' % [labels.board(c), raw()], 'XID')]
          ) + colors.count + p.mappings({ '0': { text: 'none' } }) + p.noValue('none')),
          d.at(5, 4, p.stat(
            'Real utilization',
            'The weighted activity of SMs, tensor cores, memory and engine. Absent if too few inputs were read. ' + p.saturating,
            'percentunit',
            [p.instant(device('kpulse_gpu_real_utilization_ratio'), mig)]
          ) + colors.good + p.range(0, 1) + p.noValue('not read')),
          d.at(4, 4, p.stat(
            'GPU-Util',
            'What nvidia-smi calls utilization: the share of time in which some kernel ran. If it is far above real utilization, the kernels use little of the GPU.',
            'percentunit',
            [p.instant(device('kpulse_gpu_nvml_utilization_ratio'), mig)]
          ) + colors.count + p.range(0, 1) + p.noValue('not read')),
          d.at(7, 4, p.stat(
            'Workload class',
            'What the GPU is doing now. "unknown": too few inputs were read to tell.',
            'none',
            [p.instant('max by (class, mig_profile, mig_instance) (kpulse_gpu_workload_class%s == 1) or on () label_replace(vector(0), "class", "not read", "", "")' % raw(), '{{class}}' + mig)]
          ) + colors.count + p.noValue('not read') + { options+: { textMode: 'name' } }),
          d.at(24, 4, p.table(
            'Identity',
            'Where and what the GPU is, for a ticket; the latest values in the time range.',
            'none',
            [p.rows('max by (%s, model, driver_version, pci_bus_id) (last_over_time(kpulse_gpu_info%s[$__range]))' % [labels.board(c), raw()])]
          ) + p.renamed([[c.clusterLabel, 'Cluster'], ['hostname', 'Host'], ['gpu', 'Index'], ['model', 'Model'], ['driver_version', 'Driver'], ['pci_bus_id', 'PCI address'], ['uuid', 'Full UUID']])),
        ]),
        d.row('Who holds it', [
          d.at(24, 5, p.table(
            'Holders',
            'Pods and jobs on this GPU in the time range, the latest first. Several at the same time share it.',
            'none',
            [p.rows(q.or0(
              'max by (%s, %s) (kpulse_allocation_info%s)' % [labels.device(c), labels.holder(c), raw()],
              'max by (%s, %s) (last_over_time(kpulse_allocation_info%s[$__range]))' % [labels.device(c), labels.holder(c), raw()]
            ))]
          ) + p.sorted('Value') + p.renamed([
            ['Value', 'Holds it'],
            [c.clusterLabel, 'Cluster'],
            ['workload_namespace', 'Namespace'],
            ['workload_pod', 'Pod'],
            ['workload_kind', 'Kind'],
            ['workload_name', 'Workload'],
            ['hpc_job', 'Job'],
            ['mig_instance', 'MIG instance'],
            ['mig_profile', 'MIG profile'],
          ]) + p.column('Holds it', { mappings: p.valueMappings({ '0': { text: 'no longer' }, '1': { text: 'now' } }) })),
        ]),
        d.row('Over time', [
          d.at(24, 6, p.stateTimeline(
            'Class over time',
            'The class at each reading. Profile jobs with long stretches of io_or_data_loading or busy_low_sm_use.',
            'none',
            [p.query(classNumbers, 'class' + mig)]
          ) + p.mappings({ ['%d' % i]: { text: names[i], color: colors.classes[i][1] } for i in std.range(0, std.length(names) - 1) }) + p.glossary(import '../lib/classes.json')),
          d.at(24, 7, p.stateTimeline(
            'Conditions over time',
            'Each raised condition: red makes the board crit, orange warn, yellow hot. kpulse_gpu_health_conditions_read counts the conditions that can be read; --series=full also shows those that were never raised.',
            'none',
            [p.query(orNone(raised, 'condition', 'kpulse_gpu_health_condition'), '{{condition}}')]
          ) + p.mappings(colors.raised { '-1': { text: 'no condition', color: 'transparent' } }) + p.glossary(import '../lib/conditions.json')),
          d.at(24, 4, p.stateTimeline(
            'Recommended action over time',
            'What to do about the board: the most severe action that its conditions or the driver ask for.',
            'none',
            [p.query(orNone(held('action', 'kpulse_gpu_recommended_action'), 'action', 'kpulse_gpu_recommended_action'), '{{action}}')]
          ) + p.mappings({ '-1': { text: 'nothing to do', color: 'transparent' }, '0': { text: 'no', color: 'transparent' }, '1': { text: 'yes', color: 'orange' } })),
        ]),
        d.row('Activity', [
          d.at(8, 8, p.timeseries(
            'Real utilization over time',
            'The score of the GPU, or of each of its MIG instances. The next panel shows its inputs. ' + p.saturating,
            'percentunit',
            [p.query(device('kpulse_gpu_real_utilization_ratio'), 'real utilization' + mig)]
          ) + p.range(0, 1)),
          d.at(8, 8, ratio('Inputs of real utilization', 'The inputs of the score; for MIG instances, the mean of each profile. If engine activity is high while SM and tensor activity are low, the GPU is busy but little used.', [
            ['kpulse_gpu_sm_active_ratio', 'SM', 'blue'],
            ['kpulse_gpu_tensor_active_ratio', 'tensor', 'green'],
            ['kpulse_gpu_dram_active_ratio', 'DRAM', 'purple'],
            ['kpulse_gpu_graphics_engine_active_ratio', 'engine', '#6e7077'],
          ])),
          d.at(8, 8, ratio('Arithmetic pipes', 'Which arithmetic the GPU does; for MIG instances, the mean of each profile. 16-bit training shows as tensor; high FP64 suggests a simulation.', [
            ['kpulse_gpu_fp64_active_ratio', 'FP64', 'purple'],
            ['kpulse_gpu_fp32_active_ratio', 'FP32', 'blue'],
            ['kpulse_gpu_fp16_active_ratio', 'FP16', 'green'],
            ['kpulse_gpu_int_active_ratio', 'INT', 'orange'],
            ['kpulse_gpu_sm_occupancy_ratio', 'occupancy', '#6e7077'],
          ])),
          d.at(8, 8, p.timeseries(
            'Device memory',
            'Device memory in use, and the total. If memory is full while the GPU is idle, a process was left behind.',
            'bytes',
            [p.query(device('kpulse_gpu_framebuffer_used_bytes'), 'used' + mig), p.query(device('kpulse_gpu_framebuffer_total_bytes'), 'all' + mig)]
          ) + p.lines([['used', 'blue'], ['all', '#6e7077']])),
          d.at(8, 8, p.timeseries(
            'PCIe traffic',
            'Bytes over PCIe. If it is high while SM activity is low, the job waits for data.',
            'Bps',
            [p.query(device('kpulse_gpu_pcie_receive_bytes_per_second'), 'to the GPU' + mig), p.query(device('kpulse_gpu_pcie_transmit_bytes_per_second'), 'from the GPU' + mig)]
          ) + p.lines([['to the GPU', 'blue'], ['from the GPU', 'green']])),
          d.at(8, 8, p.timeseries(
            'NVLink traffic',
            'Bytes over all NVLinks. If it stays at 0 in a multi-GPU job, the job communicates over something slower.',
            'Bps',
            [p.query('%s + %s or %s' % [board('kpulse_gpu_nvlink_transmit_bytes_per_second'), board('kpulse_gpu_nvlink_receive_bytes_per_second'), board('kpulse_gpu_nvlink_bytes_per_second')], 'both ways')]
          )),
        ]),
        d.row('Links and video engines', [
          d.at(6, 7, p.timeseries(
            'NVLinks up',
            'Links that are up, and the most in the time range. If one is down, reset the GPU; if it stays down, check cable, tray and switch.',
            'none',
            [p.query(board('kpulse_gpu_nvlink_links_active'), 'up'), p.query('max by (%s) (max_over_time(kpulse_gpu_nvlink_links_active%s[$__range] @ end()))' % [labels.board(c), raw()], 'most')]
          ) + p.lines([['up', 'blue'], ['most', '#6e7077']])),
          d.at(6, 7, p.stateTimeline(
            'NVLink fabric',
            'Health of the fabric, and whether the fabric manager has set up the GPU. If either fails, see the log of nvidia-fabricmanager.',
            'none',
            [
              p.query(board('kpulse_gpu_fabric_health'), 'health'),
              p.query(std.join('\nor\n', ['%g + 0 * (%s == %d)' % [to, board('kpulse_gpu_fabric_manager_status'), from] for from in std.range(0, 4) for to in [[0, 3, 3, 1, 2][from]]]), 'manager'),
            ]
          ) + p.mappings(colors.fabric { '1': { text: 'fine', color: 'transparent' }, '2': { text: 'failed', color: 'red' }, '3': { text: 'limited or not ready', color: 'orange' } })),
          d.at(6, 7, p.timeseries(
            'PCIe lanes',
            'Lanes on which the link runs, and the most that board and slot allow. If there are fewer under load, reseat the board.',
            'none',
            [p.query(board('kpulse_gpu_pcie_link_width'), 'lanes'), p.query(board('kpulse_gpu_pcie_link_width_max'), 'most')]
          ) + p.lines([['lanes', 'blue'], ['most', '#6e7077']])),
          d.at(6, 7, p.timeseries(
            'Encoder and decoder',
            'Utilization of the video engines, which real utilization leaves out. A job that only decodes video looks idle.',
            'percentunit',
            [p.query(device('kpulse_gpu_encoder_utilization_ratio'), 'encoder' + mig), p.query(device('kpulse_gpu_decoder_utilization_ratio'), 'decoder' + mig)]
          ) + p.range(0, 1) + p.lines([['encoder', 'blue'], ['decoder', 'green']])),
        ]),
        d.row('Power, heat and clocks', [
          d.at(8, 8, p.timeseries(
            'Power',
            'Power draw and the limit in force. At the limit, clocks are lowered; that is normal under full load.',
            'watt',
            [p.query(board('kpulse_gpu_power_watts'), 'draw'), p.query(board('kpulse_gpu_power_limit_watts'), 'limit')]
          ) + p.lines([['draw', 'blue'], ['limit', '#6e7077']])),
          d.at(8, 8, p.floating(
            'Temperature',
            'GPU and memory, with the temperatures at which kpulse warns and the GPU throttles.',
            'celsius',
            [
              p.query(board('kpulse_gpu_temperature_celsius'), 'GPU'),
              p.query(board('kpulse_gpu_memory_temperature_celsius'), 'memory'),
              p.query(board('kpulse_gpu_temperature_warning_celsius'), 'warning'),
              p.query(board('kpulse_gpu_temperature_slowdown_celsius'), 'slowdown'),
            ]
          ) + p.lines([['GPU', 'blue'], ['memory', 'purple'], ['warning', colors.hot], ['slowdown', 'orange']])),
          d.at(8, 8, p.timeseries(
            'Clocks',
            'If clocks drop under load, the timeline below shows the reason.',
            'hertz',
            [p.query(board('kpulse_gpu_sm_clock_hertz'), 'SM'), p.query(board('kpulse_gpu_memory_clock_hertz'), 'memory')]
          ) + p.lines([['SM', 'blue'], ['memory', 'purple']])),
          d.at(24, 6, p.stateTimeline(
            'What holds the clocks down',
            'Each reason while it is active. gpu_idle and sw_power_cap are normal; thermal reasons and the power brake, in orange, are not.',
            'none',
            [p.query(slowed, '{{reason}}')]
          ) + p.mappings({ '0': { text: 'no', color: 'transparent' }, '1': { text: 'yes', color: '#6e7077' }, '2': { text: 'yes', color: 'orange' } }) + p.noValue('nothing that is read')),
        ]),
        d.row('Errors', [
          d.at(24, 7, incidents.xidCodes(c, ', uuid="$gpu"', 'XIDs by code')),
          d.at(8, 7, p.timeseries(
            'Memory errors per hour',
            'ECC errors in the preceding hour. Uncorrectable errors end the job.',
            'suffix:/h',
            [p.query(q.perHour('kpulse_gpu_ecc_errors_total', raw(', scope="volatile"'), labels.board(c) + ', severity'), '{{severity}}')]
          ) + p.lines([['correctable', colors.hot], ['uncorrectable', 'red']]) + p.decimals(0)),
          d.at(8, 7, p.timeseries(
            'NVLink errors per hour',
            'Errors in the preceding hour, by kind. If they keep coming, check cable and switch.',
            'suffix:/h',
            [p.query(q.perHour('kpulse_gpu_nvlink_errors_total', raw(), labels.board(c) + ', kind'), '{{kind}}')]
          ) + p.decimals(0)),
          d.at(8, 7, p.timeseries(
            'PCIe replays per minute',
            'Mean over 15 minutes; above %g the alert fires. If they keep coming, check the slot and the riser.' % c.pcieReplaysPerMinute,
            'suffix:/min',
            [p.query(q.perMinute('kpulse_gpu_pcie_replays_total', raw(), labels.board(c)), 'replays')]
          )),
        ]),
      ]
    ),
  },
}

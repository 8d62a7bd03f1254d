// GPU: is this one all right, and what is it doing? One board with its MIG instances.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  // One uuid is enough: it is unique in the world.
  local raw(more='') = '{%suuid="$gpu"%s}' % [c.kpulseMatchers, more],
  local recorded(more='') = '{uuid="$gpu"%s}' % more,
  local device(name, more='') = 'max by (%s) (%s%s)' % [labels.device(c), name, raw(more)],
  local board(name, more='') = 'max by (%s) (%s%s)' % [labels.board(c), name, raw(more)],
  local by(label, name, more='') = 'max by (%s, %s) (%s%s)' % [labels.board(c), label, name, raw(more)],
  // held is by with a 0 for what held at any time of the range, and does not now. In heldOrNone "none" is 2 while nothing
  // holds on a board of which something could be looked at, so that the timeline of a board that is well says so.
  local held(label, name) = q.or0(by(label, name), 'max by (%s, %s) (last_over_time(%s%s[$__range]))' % [labels.board(c), label, name, raw()]),
  local heldOrNone(label, name) = '%s\nor\nlabel_replace(2 + 0 * %s, "%s", "none", "", "") unless on (%s) %s == 1' % [
    held(label, name),
    board('kpulse_gpu_health_conditions_read'),
    label,
    labels.board(c),
    by(label, name),
  ],
  // An instance is named in every legend; a board that is not cut has no such label.
  local mig = ' {{mig_instance}}',
  local ratio(title, description, list) = p.timeseries(
    title, description, 'percentunit', [p.query(device(item[0]), item[1] + mig) for item in list]
  ) + p.range(0, 1),
  // classNumbers has one series a device, of the number of the class that took most of its
  // last five minutes: the states of one row of a timeline.
  local names = [class[0] for class in colors.classes],
  local classNumbers = 'max by (mig_instance) (\n%s\n)' % std.join('\nor\n', [
    '0 * device:kpulse_gpu_workload_class:dominant5m%s + %d' % [recorded(', class="%s"' % names[i]), i]
    for i in std.range(0, std.length(names) - 1)
  ]),
  local rate(name, label, more='') = 'max by (%s, %s) (rate(%s%s[$__rate_interval]))' % [labels.board(c), label, name, raw(more)],

  grafanaDashboards+:: {
    'kpulse-gpu.json': d.new(
      c,
      'kpulse-gpu.json',
      'GPU',
      'Is this GPU all right, and what is it doing?',
      [v.datasource(c), v.cluster(c), v.hostname(c), v.gpu(c, multi=false)],
      [
        d.row('Now', [
          d.at(4, 4, p.stat(
            'Health',
            'The worst condition that is raised. The timeline below names it; the runbook of its alert says what to do.',
            'none',
            [p.instant(q.severity(c, ', uuid="$gpu"'))]
          ) + p.mappings(q.severities)),
          d.at(4, 4, p.stat(
            'Real utilization',
            'The weighted activity of SMs, tensor cores, memory and engine. Absent where too little of it was read.',
            'percentunit',
            [p.instant(device('kpulse_gpu_real_utilization_ratio'), '{{mig_instance}}')]
          ) + colors.good + p.range(0, 1)),
          d.at(4, 4, p.stat(
            'GPU-Util',
            'What nvidia-smi calls utilization: some kernel ran. Far above real utilization: the kernels leave most of the GPU empty.',
            'percentunit',
            [p.instant(device('kpulse_gpu_nvml_utilization_ratio'), '{{mig_instance}}')]
          ) + colors.count + p.range(0, 1)),
          d.at(4, 4, p.stat(
            'Class',
            'What the GPU is doing now, by the cascade of rules. "unknown" means that too little was read to tell.',
            'none',
            [p.instant('max by (class, mig_instance) (kpulse_gpu_workload_class%s == 1)' % raw(), '{{class}} {{mig_instance}}')]
          ) + colors.count + { options+: { textMode: 'name' } }),
          d.at(8, 4, p.table(
            'Which GPU this is',
            'The model, driver and slot, to name in a ticket.',
            'none',
            [p.rows('max by (hostname, gpu, model, driver_version, pci_bus_id) (kpulse_gpu_info%s)' % raw())]
          ) + p.renamed([['hostname', 'Host'], ['gpu', 'Index'], ['model', 'Model'], ['driver_version', 'Driver'], ['pci_bus_id', 'PCI address']])),
        ]),
        d.row('Over time', [
          d.at(24, 6, p.stateTimeline(
            'Class over time',
            'The class that took most of each five minutes. Long stretches of io_or_data_loading or busy_low_sm_use are worth a profiler.',
            'none',
            [p.query(classNumbers, 'class' + mig)]
          ) + p.mappings({ ['%d' % i]: { text: names[i], color: colors.classes[i][1] } for i in std.range(0, std.length(names) - 1) })),
          d.at(24, 7, p.stateTimeline(
            'Conditions over time',
            'Each condition that was raised: 1 while it is. kpulse_gpu_health_conditions_read says how many are looked at; with --series=full those that were never raised are here too.',
            'none',
            [p.query(heldOrNone('condition', 'kpulse_gpu_health_condition'), '{{condition}}')]
          ) + p.mappings({ '0': { text: 'clear', color: 'green' }, '1': { text: 'raised', color: 'red' }, '2': { text: 'nothing is raised', color: 'green' } })),
          d.at(24, 4, p.stateTimeline(
            'Recommended action over time',
            'What has to be done about the board: the most that its conditions, or the driver itself, ask for.',
            'none',
            [p.query(heldOrNone('action', 'kpulse_gpu_recommended_action'), '{{action}}')]
          ) + p.mappings({ '0': { text: 'no', color: 'text' }, '1': { text: 'yes', color: 'orange' }, '2': { text: 'nothing to do', color: 'text' } })),
        ]),
        d.row('Activity', [
          d.at(12, 8, ratio('Real utilization and its inputs', 'The score and what it is made of. A high engine line above low SM and tensor lines is a GPU that is busy and empty.', [
            ['kpulse_gpu_real_utilization_ratio', 'real utilization'],
            ['kpulse_gpu_sm_active_ratio', 'SM'],
            ['kpulse_gpu_tensor_active_ratio', 'tensor'],
            ['kpulse_gpu_dram_active_ratio', 'DRAM'],
            ['kpulse_gpu_graphics_engine_active_ratio', 'engine'],
          ])),
          d.at(12, 8, ratio('Pipes', 'Which arithmetic the GPU does. Training in 16 bits shows as tensor; a high FP64 line is a simulation.', [
            ['kpulse_gpu_fp64_active_ratio', 'FP64'],
            ['kpulse_gpu_fp32_active_ratio', 'FP32'],
            ['kpulse_gpu_fp16_active_ratio', 'FP16'],
            ['kpulse_gpu_int_active_ratio', 'INT'],
            ['kpulse_gpu_sm_occupancy_ratio', 'occupancy'],
          ])),
          d.at(8, 8, p.timeseries(
            'Memory',
            'Device memory in use, of all there is. Full and idle at once: somebody left a process behind.',
            'bytes',
            [p.query(device('kpulse_gpu_framebuffer_used_bytes'), 'used' + mig), p.query(device('kpulse_gpu_framebuffer_total_bytes'), 'all' + mig)]
          ) + p.range(0, null)),
          d.at(8, 8, p.timeseries(
            'PCIe',
            'Bytes over PCIe. High while SM activity is low: the job waits for data.',
            'Bps',
            [p.query(device('kpulse_gpu_pcie_receive_bytes_per_second'), 'to the GPU' + mig), p.query(device('kpulse_gpu_pcie_transmit_bytes_per_second'), 'from the GPU' + mig)]
          ) + p.range(0, null)),
          d.at(8, 8, p.timeseries(
            'NVLink',
            'Bytes over all NVLinks. Flat at 0 in a job of many GPUs: it talks over something slower.',
            'Bps',
            [p.query(board('kpulse_gpu_nvlink_bytes_per_second'), 'both ways')]
          ) + p.range(0, null)),
        ]),
        d.row('Power, heat and clocks', [
          d.at(8, 8, p.timeseries(
            'Power',
            'Draw beside the limit in force. At the limit for long: clocks are lowered; that is normal under full load.',
            'watt',
            [p.query(board('kpulse_gpu_power_watts'), 'draw'), p.query(board('kpulse_gpu_power_limit_watts'), 'limit')]
          ) + p.range(0, null)),
          d.at(8, 8, p.timeseries(
            'Temperature',
            'GPU and memory beside the temperatures from which we warn and the GPU slows down.',
            'celsius',
            [
              p.query(board('kpulse_gpu_temperature_celsius'), 'GPU'),
              p.query(board('kpulse_gpu_memory_temperature_celsius'), 'memory'),
              p.query(board('kpulse_gpu_temperature_warning_celsius'), 'warning'),
              p.query(board('kpulse_gpu_temperature_slowdown_celsius'), 'slowdown'),
            ]
          )),
          d.at(8, 8, p.timeseries(
            'Clocks',
            'A drop under load has a reason in the timeline below.',
            'hertz',
            [p.query(board('kpulse_gpu_sm_clock_hertz'), 'SM'), p.query(board('kpulse_gpu_memory_clock_hertz'), 'memory')]
          ) + p.range(0, null)),
          d.at(24, 6, p.stateTimeline(
            'What holds the clocks down',
            'A reason is 1 while it is in force. gpu_idle and sw_power_cap are normal; thermal ones and the power brake are not.',
            'none',
            [p.query(held('reason', 'kpulse_gpu_clock_event_active'), '{{reason}}')]
          ) + p.mappings({ '0': { text: 'no', color: 'text' }, '1': { text: 'yes', color: 'orange' } })),
        ]),
        d.row('Errors', [
          d.at(6, 7, p.stat(
            'Last XID',
            'Code of the last error that the driver reported; none where there is no data. It stays until the exporter restarts: the next panel says whether it is new.',
            'none',
            [p.instant(board('kpulse_gpu_xid_last'), 'XID')]
          ) + colors.count),
          d.at(6, 7, p.timeseries(
            'XIDs by code',
            'How often each code came since the proxy was started. 45 follows whatever ends a process.',
            'none',
            [p.query('max by (%s, xid) (kpulse_gpu_xid_errors_total%s)' % [labels.board(c), raw()], '{{xid}}')]
          )),
          d.at(6, 7, p.timeseries(
            'Memory errors',
            'ECC errors a second since the driver was loaded. Uncorrectable ones cost the job.',
            'cps',
            [p.query(rate('kpulse_gpu_ecc_errors_total', 'severity', ', scope="volatile"'), '{{severity}}')]
          )),
          d.at(6, 7, p.timeseries(
            'Link errors',
            'PCIe replays and NVLink errors a second. Steady ones want a look at the slot, riser or cable.',
            'cps',
            [
              p.query(rate('kpulse_gpu_nvlink_errors_total', 'kind'), 'NVLink {{kind}}'),
              p.query('max by (%s) (rate(kpulse_gpu_pcie_replays_total%s[$__rate_interval]))' % [labels.board(c), raw()], 'PCIe replay'),
            ]
          )),
        ]),
        d.row('Who holds it', [
          d.at(24, 6, p.table(
            'Holders',
            'Pods and jobs on this GPU at the end of the time range. More than one: they share it.',
            'none',
            [p.rows('max by (mig_instance, mig_profile, %s) (kpulse_allocation_info%s)' % [labels.holder(c), raw()])]
          ) + p.renamed([
            ['workload_namespace', 'Namespace'],
            ['workload_pod', 'Pod'],
            ['workload_name', 'Workload'],
            ['hpc_job', 'Job'],
            ['mig_instance', 'MIG instance'],
            ['mig_profile', 'MIG profile'],
          ])),
        ]),
      ]
    ),
  },
}

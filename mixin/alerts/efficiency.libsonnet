// Alerts about GPUs that are paid for and not used, for a mail in the morning.
local labels = import '../lib/labels.libsonnet';
local q = import '../lib/query.libsonnet';

{
  local c = $._config {
    device: labels.device($._config),
    holder: labels.holder($._config),
    // Namespaces that these alerts cover.
    asked: if $._config.excludeNamespaces == '' then '' else 'workload_namespace!~"%s"' % $._config.excludeNamespaces,
  },
  local held = '{{ with $labels.workload_pod }}pod {{ . }} {{ end }}{{ with $labels.workload_namespace }}in {{ . }} {{ end }}{{ with $labels.hpc_job }}job {{ . }}%s {{ end }}' % labels.ownerWords(c),
  // Kinds of workloads whose replicas serve requests on their own: one that is idle keeps no other waiting.
  local services = 'DaemonSet|Deployment|InferenceService|RayService|ReplicaSet|ReplicationController|Rollout|Service|StatefulSet',
  local by = ' held by{{ with $labels.workload_pod }} pod {{ . }}{{ end }}{{ with $labels.workload_namespace }} in {{ . }}{{ end }}{{ with $labels.hpc_job }} job {{ . }}%s{{ end }}.' % labels.ownerWords(c),

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-efficiency',
      rules: [
               {
                 alert: 'KpulseGPUIdleAllocated',
                 // Only holders that have been there all of the time, and whose utilization was known for most of it,
                 // or whose board has no profiling counters and ran no kernel: they have the value -1.
                 // From raw counters: recorded rates would take 40 % less CPU, but not tell holders of boards without
                 // kpulse_gpu_info.
                 expr: |||
                   (
                     max by (%(device)s, %(holder)s) (increase(kpulse_allocation_real_utilization_seconds_total{%(kpulseMatchers)s%(asked)s}[%(idleFor)s]))
                     / on (%(device)s, %(holder)s)
                     (
                       max by (%(device)s, %(holder)s) (increase(kpulse_allocation_real_utilization_known_seconds_total{%(kpulseMatchers)s%(asked)s}[%(idleFor)s]))
                       > on (%(device)s, %(holder)s)
                       0.75 * max by (%(device)s, %(holder)s) (increase(kpulse_allocation_seconds_total{%(kpulseMatchers)s%(asked)s}[%(idleFor)s]))
                     )
                     < %(idleUtilizationThreshold)g
                     or
                     max by (%(device)s, %(holder)s) (kpulse_allocation_seconds_total{%(kpulseMatchers)s%(asked)s})
                     * on (%(device)s) group_left ()
                     (max by (%(device)s) (max_over_time(device:kpulse_gpu_nvml_utilization:avg5m[%(idleFor)s])) == 0)
                     - 1
                     unless on (%(device)s, %(holder)s)
                     max by (%(device)s, %(holder)s) (rate(kpulse_allocation_real_utilization_known_seconds_total{%(kpulseMatchers)s%(asked)s}[5m])) > 0
                   )
                   and on (%(device)s, %(holder)s)
                   max by (%(device)s, %(holder)s) (last_over_time(kpulse_allocation_seconds_total{%(kpulseMatchers)s%(asked)s}[5m] offset %(idleFor)s))
                   and on (%(device)s, %(holder)s)
                   max by (%(device)s, %(holder)s) (rate(kpulse_allocation_seconds_total{%(kpulseMatchers)s%(asked)s}[5m])) > 0
                 ||| % c + labels.exempt(c),
                 'for': '30m',
                 labels: { severity: c.infoSeverity },
                 annotations: {
                   summary: labels.gpuName + ' is idle,' + by,
                   description: held + 'holds ' + labels.gpuWords + ', {{ if lt $value 0.0 }}on which no kernel ran for %(idleFor)s.{{ else }}whose real utilization was {{ $value | humanizePercentage }} over %(idleFor)s.{{ end }}' % c,
                 },
               },
               {
                 alert: 'KpulseNamespaceWaste',
                 expr: |||
                   sum_over_time(namespace:kpulse_allocation_idle_gpus:rate5m{workload_namespace!=""%(asked)s}[1d]) / 60 > %(namespaceWasteGPUHours)g
                 ||| % c,
                 'for': '1h',
                 labels: { severity: c.infoSeverity },
                 annotations: {
                   summary: 'Namespace {{ $labels.workload_namespace }} holds GPUs that it does not use.',
                   description: '{{ $labels.workload_namespace }} held idle GPUs for {{ $value | humanize }} GPU-hours in the last day.',
                 },
               },
               {
                 alert: 'KpulseAccountWaste',
                 expr: |||
                   sum_over_time(account:kpulse_allocation_idle_gpus:rate5m%s[1d]) / 60 > %g
                 ||| % [if c.excludeAccounts == '' then '' else '{hpc_account!~"%s"}' % c.excludeAccounts, c.accountWasteGPUHours],
                 'for': '1h',
                 labels: { severity: c.infoSeverity },
                 annotations: {
                   summary: 'Account {{ $labels.hpc_account }} holds GPUs that it does not use.',
                   description: 'Jobs of {{ $labels.hpc_account }} held idle GPUs for {{ $value | humanize }} GPU-hours in the last day.',
                 },
               },
             ] + (if c.alertStragglers then [{
                    alert: 'KpulseGPUStragglerInJob',
                    expr: '(\n%s) < %g\n' % [q.straggling($._config, ', workload_kind!~"%s"' % services), c.stragglerShare],
                    'for': '30m',
                    labels: { severity: c.infoSeverity },
                    annotations: {
                      summary: labels.gpuName + ' is slower than the rest of its job,' + by,
                      description: held + 'is at {{ $value | humanizePercentage }} of the median of its job on ' + labels.gpuWords + '; the others wait for it.',
                    },
                  }] else []) + (if c.alertIdleMemoryHeld then [{
                                   alert: 'KpulseIdleMemoryHeld',
                                   expr: |||
                                     max by (%(device)s) (min_over_time(kpulse_gpu_framebuffer_used_bytes%(kpulseOnly)s[1h])) > %(idleMemoryBytes)d
                                     and on (%(device)s)
                                     max by (%(device)s) (rate(kpulse_gpu_workload_class_seconds_total{%(kpulseMatchers)sclass="idle"}[1h])) > 0.95
                                   ||| % c,
                                   'for': '1h',
                                   labels: { severity: c.infoSeverity },
                                   annotations: {
                                     summary: labels.gpuName + ' is idle with its memory in use.' + labels.instanceHolderWords(c),
                                     description: labels.gpuWords + ' has been idle for an hour with {{ $value | humanize1024 }}B of its memory in use.' + labels.instanceHolderWords(c),
                                   },
                                 }] else []) + (if c.alertHealthFlapping then [{
                                                  alert: 'KpulseGPUFlapping',
                                                  expr: |||
                                                    changes((
                                                      %(states)s
                                                    )[1h:1m]) > %(healthChangesPerHour)g
                                                  ||| % c { states: std.strReplace(labels.state(c, c.kpulseMatchers), '\n', '\n  ') },
                                                  'for': '30m',
                                                  labels: { severity: c.infoSeverity },
                                                  annotations: {
                                                    summary: labels.gpuName + ': its health keeps changing.' + labels.holderWords(c),
                                                    description: labels.gpuWords + ' changed its health state {{ $value }} times in the last hour.' + labels.holderWords(c),
                                                  },
                                                }] else [])
             + (if c.alertPowerLimited then [{
                  alert: 'KpulseGPUPowerLimited',
                  expr: |||
                    max by (%(board)s) (kpulse_gpu_power_limit_watts%(only)s)
                    < 0.99 *
                    max by (%(board)s) (kpulse_gpu_power_limit_default_watts%(only)s)
                  ||| % { board: labels.board(c), only: c.kpulseOnly },
                  'for': '1h',
                  labels: { severity: c.infoSeverity },
                  annotations: {
                    summary: labels.gpuName + ' may draw less power than it was built for.' + labels.holderWords(c),
                    description: labels.gpuWords + ' has a power limit of {{ $value }} W, below its default.' + labels.holderWords(c),
                  },
                }] else []),
    }],
  },
}

// Alerts about jobs, over all of their GPUs.
local labels = import '../lib/labels.libsonnet';

{
  local c = $._config,
  local asked = if c.excludeNamespaces == '' then '' else '{workload_namespace!~"%s"}' % c.excludeNamespaces,
  local name = '{{ with $labels.hpc_job }}Job {{ . }}{{ else }}{{ $labels.workload_kind }} {{ $labels.workload_name }} of {{ $labels.workload_namespace }}{{ end }}',
  local gang = labels.gang(c),
  // selected returns a query of series of the job, for templates: %s stands for its matchers.
  local selected(query) = 'printf `%s` $labels.%s $labels.hpc_job $labels.workload_namespace $labels.workload_kind $labels.workload_name | query'
                          % [query % std.join(', ', [label + '=%q' for label in std.split(gang, ', ')]), c.clusterLabel],
  // number counts the GPUs or hosts of the job.
  local number(of) = '{{ with %s }}{{ . | first | value }}{{ end }}' % selected('count(count by (%s) (gang:kpulse_allocation_member:info{%%s}))' % of),
  // Since when: the averages of the rules fall four minutes after the start.
  local since = '{{ range %s }} since {{ .Value | humanizeTimestamp }}{{ end }}' % selected('min(ALERTS_FOR_STATE{alertname="KpulseJobStalled", %s}) - 240'),
  local owner = '{{ with $labels.hpc_job }}%s{{ end }}' % labels.ownerWords(c),

  // stalled is an alert about stalled jobs: those of many GPUs, or the others.
  local stalled(severity, operator) = {
    alert: 'KpulseJobStalled',
    // The 5-minute averages of the rules need four minutes of a stall to fall to a quarter, and one
    // minute after it to rise above that. So eight minutes here mean a stall of ten and a half, which is
    // longer than a checkpoint.
    expr: |||
      gang:kpulse_allocation_stalled_power:ratio5m%s
      %s on (%s)
      count by (%s) (gang:kpulse_allocation_member:info) >= %d
    ||| % [asked, operator, gang, gang, c.stalledCriticalGPUs] + labels.exempt(c),
    'for': '8m',
    labels: { severity: severity },
    annotations: {
      summary: name + owner + ' has stalled: its GPUs spin without doing work.',
      description: name + owner + ' holds ' + number('hostname, gpu, uuid') + ' GPUs on ' + number('hostname') + ' hosts. GPU-Util shows each as busy' + since + ', but they draw {{ printf "%.2f" $value }} times the power of its last working hour, with less than a quarter of its tensor and memory activity.',
    },
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-jobs',
      // Every minute of a large job that hangs costs as much as a broken node.
      rules: [stalled(c.criticalSeverity, 'and'), stalled(c.warningSeverity, 'unless')],
    }],
  },
}

// Alerts about jobs, over all of their GPUs.
{
  local c = $._config,
  local asked = if c.excludeNamespaces == '' then '' else '{workload_namespace!~"%s"}' % c.excludeNamespaces,
  local name = '{{ with $labels.hpc_job }}Job {{ . }}{{ else }}{{ $labels.workload_kind }} {{ $labels.workload_name }} of {{ $labels.workload_namespace }}{{ end }}',
  // Counts the GPUs or hosts of the job.
  local number(of) =
    '{{ with printf `count(count by (%s) (gang:kpulse_allocation_member:info{hpc_job=%%q, workload_namespace=%%q, workload_kind=%%q, workload_name=%%q}))` ' % of +
    '$labels.hpc_job $labels.workload_namespace $labels.workload_kind $labels.workload_name | query }}{{ . | first | value }}{{ end }}',

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-jobs',
      rules: [
        {
          alert: 'KpulseJobStalled',
          // The 5-minute averages of the rules need four minutes of a stall to fall to a quarter, and one
          // minute after it to rise above that. So eight minutes here mean a stall of ten and a half, which is
          // longer than a checkpoint.
          expr: 'gang:kpulse_allocation_stalled_power:ratio5m' + asked,
          'for': '8m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: name + ' has stalled: its GPUs spin without doing work.',
            description: name + ' holds ' + number('hostname, gpu, uuid') + ' GPUs on ' + number('hostname') + ' hosts; NVML reports each as busy, at {{ printf "%.2f" $value }} of the power of its last working hour and less than a quarter of its tensor and memory activity.',
          },
        },
      ],
    }],
  },
}

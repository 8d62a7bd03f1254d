// What makes a device itself in a query, as functions of _config. Everything is
// aggregated to these, so that two replicas of Prometheus, a pod that comes and goes and
// a driver upgrade change neither a sum nor an alert.
{
  board(c):: '%s, hostname, gpu, uuid' % c.clusterLabel,
  device(c):: self.board(c) + ', mig_instance, mig_profile',
  host(c):: '%s, hostname' % c.clusterLabel,
  holder(c):: 'workload_namespace, workload_pod, workload_kind, workload_name, hpc_job',

  // Words of annotations: which GPU, where, and who holds it at the moment.
  gpuWords:: 'GPU {{ $labels.gpu }} of {{ $labels.hostname }} ({{ $labels.uuid }})',
  holderWords(c):: self.heldBy(c, ' Held by', 'kpulse_allocation_info{%s}'),
  // Of a GPU that is gone: who held it until then.
  lastHolderWords(c):: self.heldBy(c, ' It was held by', 'last_over_time(kpulse_allocation_info{%s}[30m])'),
  heldBy(c, words, info)::
    '{{ range printf `max by (workload_namespace, workload_pod, hpc_job) (%s)` $labels.uuid | query }}' % (info % (c.kpulseSelector + ', uuid="%s"')) +
    words + '{{ with .Labels.workload_pod }} pod {{ . }}{{ end }}{{ with .Labels.workload_namespace }} in {{ . }}{{ end }}{{ with .Labels.hpc_job }} job {{ . }}{{ end }}.{{ end }}',
}

// What makes a device itself in a query, as functions of _config. Everything is
// aggregated to these, so that two replicas of Prometheus, a pod that comes and goes and
// a driver upgrade change neither a sum nor an alert.
{
  board(c):: '%s, hostname, gpu, uuid' % c.clusterLabel,
  device(c):: self.board(c) + ', mig_instance, mig_profile',
  host(c):: '%s, hostname' % c.clusterLabel,
  holder(c):: 'workload_namespace, workload_pod, workload_kind, workload_name, hpc_job',

  // Words of annotations: which GPU, where, and who holds it at the moment. Of a MIG
  // instance, which one; what its alert says of holders must not name its neighbours'.
  gpuName:: 'GPU {{ $labels.gpu }}{{ with $labels.mig_instance }}, MIG instance {{ . }},{{ end }} of {{ $labels.hostname }}',
  gpuWords:: self.gpuName + ' ({{ $labels.uuid }})',
  holderWords(c):: self.heldBy(' Held by', 'kpulse_allocation_info{%s, uuid="%%s"}' % c.kpulseSelector, '$labels.uuid'),
  instanceHolderWords(c)::
    self.heldBy(' Held by', 'kpulse_allocation_info{%s, uuid="%%s", mig_instance="%%s"}' % c.kpulseSelector, '$labels.uuid $labels.mig_instance'),
  // Of a GPU that is gone: who held it until then.
  lastHolderWords(c):: self.heldBy(' It was held by', 'last_over_time(kpulse_allocation_info{%s, uuid="%%s"}[30m])' % c.kpulseSelector, '$labels.uuid'),
  heldBy(words, info, ids)::
    '{{ range printf `max by (workload_namespace, workload_pod, hpc_job) (' + info + ')` ' + ids + ' | query }}' +
    words + '{{ with .Labels.workload_pod }} pod {{ . }}{{ end }}{{ with .Labels.workload_namespace }} in {{ . }}{{ end }}{{ with .Labels.hpc_job }} job {{ . }}{{ end }}.{{ end }}',
}

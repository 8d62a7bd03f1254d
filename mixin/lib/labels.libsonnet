// What makes a device itself in a query, as functions of _config. Everything is
// aggregated to these, so that two replicas of Prometheus, a pod that comes and goes and
// a driver upgrade change neither a sum nor an alert.
{
  board(c):: '%s, hostname, gpu, uuid' % c.clusterLabel,
  // columns are those labels as tables show them.
  columns(c):: [[c.clusterLabel, 'Cluster'], ['hostname', 'Host'], ['gpu', 'GPU'], ['uuid', 'UUID']],
  // legend names a line of a chart, after its cluster: hosts, namespaces and addresses of two clusters may have one name.
  legend(c, of):: (if c.showMultiCluster then '{{%s}} ' % c.clusterLabel else '') + of,
  device(c):: self.board(c) + ', mig_instance, mig_profile',
  host(c):: '%s, hostname' % c.clusterLabel,
  holder(c):: 'workload_namespace, workload_pod, workload_kind, workload_name, hpc_job',

  // state is a number of each board for its state of health: 3 crit, 2 warn, 1 hot, 0.5
  // unknown, 0 ok. Only what is 1 counts: a proxy may serve the other states as 0, or not.
  state(c, matchers, more='')::
    'max by (%s) (\n%s\n)' % [self.board(c), std.join('\n  or\n', [
      '  %g * (kpulse_gpu_health{%sstate="%s"%s} == 1)' % [rank[1], matchers, rank[0], more]
      for rank in [['crit', 3], ['warn', 2], ['hot', 1], ['unknown', 0.5], ['ok', 0]]
    ])],

  // now is the boards of which a gauge that is served as 1 while it holds does so, at the
  // moment. A proxy may serve what does not hold as 0, or not at all. A scrape that fails
  // ends all series of a host for its length; that must not set `for` back, so what held last
  // within five minutes holds on where nothing is known of a board.
  now(c, name, matchers)::
    local board = self.board(c);
    |||
      (
        max by (%(board)s) (%(name)s{%(matchers)s} == 1)
        or
        max by (%(board)s) (last_over_time(%(name)s{%(matchers)s}[5m]) == 1)
          unless on (%(board)s) max by (%(board)s) (kpulse_gpu_health%(only)s)
      )
    ||| % { board: board, name: name, matchers: c.kpulseMatchers + matchers, only: c.kpulseOnly },

  // down is the targets that cannot be scraped and served kpulse_build_info within the last
  // day, whatever their job is called.
  down(c, matchers='')::
    |||
      up%(matchers)s == 0
      and on (%(cluster)s, job, instance)
      last_over_time(kpulse_build_info%(only)s[1d])
    ||| % { matchers: if matchers == '' then '' else '{%s}' % matchers, cluster: c.clusterLabel, only: c.kpulseOnly },

  // Words of annotations: which GPU, where, and who holds it at the moment. Of a MIG
  // instance, which one; what its alert says of holders must not name its neighbours'.
  gpuName:: 'GPU {{ $labels.gpu }}{{ with $labels.mig_instance }}, MIG instance {{ . }},{{ end }} on {{ $labels.hostname }}',
  gpuWords:: self.gpuName + ' ({{ $labels.uuid }})',
  // Of a GPU that is gone, who held it last within half an hour.
  holderWords(c):: self.heldBy(
    ' Held by',
    'kpulse_allocation_info{%(only)suuid="%%[1]s"} or last_over_time(kpulse_allocation_info{%(only)suuid="%%[1]s"}[30m]) unless on (uuid) kpulse_gpu_present{%(only)suuid="%%[1]s"} == 1' % { only: c.kpulseMatchers },
    '$labels.uuid'
  ),
  instanceHolderWords(c)::
    self.heldBy(' Held by', 'kpulse_allocation_info{%suuid="%%s", mig_instance="%%s"}' % c.kpulseMatchers, '$labels.uuid $labels.mig_instance'),
  // Of a GPU that is gone: who held it until then.
  lastHolderWords(c):: self.heldBy(
    ' Last held by',
    'last_over_time(kpulse_allocation_info{%suuid="%%[1]s"}[30m]) or allocation:kpulse_allocation_gone:info{uuid="%%[1]s"}' % c.kpulseMatchers,
    '$labels.uuid'
  ),
  heldBy(words, info, ids)::
    '{{ range printf `max by (workload_namespace, workload_pod, hpc_job) (' + info + ')` ' + ids + ' | query }}' +
    words + '{{ with .Labels.workload_pod }} pod {{ . }}{{ end }}{{ with .Labels.workload_namespace }} in {{ . }}{{ end }}{{ with .Labels.hpc_job }} job {{ . }}{{ end }}.{{ end }}',
}

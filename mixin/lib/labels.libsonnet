// Labels that identify a device, as functions of _config. All queries aggregate by them, so that neither
// Prometheus replicas, nor pods that come and go, nor a driver upgrade change a sum or an alert.
{
  board(c):: '%s, hostname, gpu, uuid' % c.clusterLabel,
  // columns lists those labels as columns of tables.
  columns(c):: [[c.clusterLabel, 'Cluster'], ['hostname', 'Host'], ['gpu', 'GPU'], ['uuid', 'UUID']],
  // legend names a line of a chart, with its cluster in front, since hosts, namespaces and addresses of two
  // clusters may have the same name.
  legend(c, of):: (if c.showMultiCluster then '{{%s}} ' % c.clusterLabel else '') + of,
  device(c):: self.board(c) + ', mig_instance, mig_profile',
  host(c):: '%s, hostname' % c.clusterLabel,
  holder(c):: 'workload_namespace, workload_pod, workload_kind, workload_name, hpc_job',
  // gang identifies a job, or a workload without one.
  gang(c):: '%s, hpc_job, workload_namespace, workload_kind, workload_name' % c.clusterLabel,

  // exempt leaves out the jobs of excludeAccounts and excludePartitions.
  exempt(c)::
    local of(label, names) =
      if names == '' then [] else ['last_over_time(kpulse_allocation_info{%shpc_job!="", %s=~"%s"}[5m])' % [c.kpulseMatchers, label, names]];
    local jobs = of('hpc_account', c.excludeAccounts) + of('hpc_partition', c.excludePartitions);
    if jobs == [] then '' else 'unless on (%s, hpc_job) (\n  %s\n)\n' % [c.clusterLabel, std.join('\n  or\n  ', jobs)],

  // state ranks each board by its health: 3 crit, 2 warn, 1 hot, 0.5 unknown, 0 ok. Only samples of 1 count: a
  // proxy may serve the other states as 0, or leave them out.
  state(c, matchers, more='')::
    'max by (%s) (\n%s\n)' % [self.board(c), std.join('\n  or\n', [
      '  %g * (kpulse_gpu_health{%sstate="%s"%s} == 1)' % [rank[1], matchers, rank[0], more]
      for rank in [['crit', 3], ['warn', 2], ['hot', 1], ['unknown', 0.5], ['ok', 0]]
    ])],

  // now selects the boards for which a gauge is 1 now. A proxy may serve a gauge that does not hold as 0, or
  // leave it out. A failed scrape ends all series of a host; that must not reset `for`, so a board without any
  // series keeps its state of the last five minutes.
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

  // down selects the targets that cannot be scraped and that served kpulse_build_info within the last day,
  // under any job name.
  down(c, matchers='')::
    |||
      up%(matchers)s == 0
      and on (%(cluster)s, job, instance)
      last_over_time(kpulse_build_info%(only)s[1d])
    ||| % { matchers: if matchers == '' then '' else '{%s}' % matchers, cluster: c.clusterLabel, only: c.kpulseOnly },

  // Words for annotations: which GPU, its host, and its current holders. For a MIG instance also which
  // instance, and only its own holders.
  gpuName:: 'GPU {{ $labels.gpu }}{{ with $labels.mig_instance }}, MIG instance {{ . }},{{ end }} on {{ $labels.hostname }}',
  gpuWords:: self.gpuName + ' ({{ $labels.uuid }})',
  // For a GPU that is gone: its last holder within half an hour.
  holderWords(c):: self.heldBy(
    c,
    ' Held by',
    'kpulse_allocation_info{%(only)suuid="%%[1]s"} or last_over_time(kpulse_allocation_info{%(only)suuid="%%[1]s"}[30m]) unless on (uuid) kpulse_gpu_present{%(only)suuid="%%[1]s"} == 1' % { only: c.kpulseMatchers },
    '$labels.uuid'
  ),
  instanceHolderWords(c)::
    self.heldBy(c, ' Held by', 'kpulse_allocation_info{%suuid="%%s", mig_instance="%%s"}' % c.kpulseMatchers, '$labels.uuid $labels.mig_instance'),
  // For a GPU that is gone: its last holder.
  lastHolderWords(c):: self.heldBy(
    c,
    ' Last held by',
    'last_over_time(kpulse_allocation_info{%suuid="%%[1]s"}[30m]) or allocation:kpulse_allocation_gone:info{uuid="%%[1]s"}' % c.kpulseMatchers,
    '$labels.uuid'
  ),
  heldBy(c, words, info, ids)::
    '{{ range printf `max by (workload_namespace, workload_pod, hpc_job) (' + info + ')` ' + ids + ' | query }}' +
    words + '{{ with .Labels.workload_pod }} pod {{ . }}{{ end }}{{ with .Labels.workload_namespace }} in {{ . }}{{ end }}{{ with .Labels.hpc_job }} job {{ . }}' + self.ownerWords(c) + '{{ end }}.{{ end }}',
  // ownerWords names the user and the account of the job `.`, where known: now, or within half an hour.
  ownerWords(c)::
    '{{ range printf `topk(1, %(owner)s or on () last_over_time(%(owner)s[30m]))` $labels.%(cluster)s . $labels.%(cluster)s . | query }}{{ with .Labels.hpc_user }} of user {{ . }}{{ end }}{{ with .Labels.hpc_account }}, account {{ . }}{{ end }}{{ end }}'
    % { owner: 'job:kpulse_allocation_owner:info{%s=%%q, hpc_job=%%q}' % c.clusterLabel, cluster: c.clusterLabel },
}

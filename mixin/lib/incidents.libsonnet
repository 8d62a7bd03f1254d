// Parts of incidents that several dashboards show: missing boards, firing alerts, and XIDs in words. All are
// functions of _config, and use the variables cluster and hostname.
local labels = import 'labels.libsonnet';
local p = import 'panel.libsonnet';
local q = import 'query.libsonnet';

local xids = std.parseJson(importstr 'xids.json');

// words maps each XID to a text from the XID table.
local words(of, colored=true) = p.valueMappings({
  [code]: of(xids[code]) + if colored then { color: { fatal: 'red', warning: 'orange' }[xids[code].severity] } else {}
  for code in std.objectFields(xids)
  if !colored || std.member(['fatal', 'warning'], xids[code].severity)
});

local actions = {
  none: 'nothing',
  restart_application: 'restart the program',
  check_hardware: 'check the hardware',
  reset_gpu: 'reset the GPU',
  restart_vm: 'restart the VM',
  reboot_node: 'reboot the node',
  replace: 'replace the board',
};

// inWords formats the columns of a table with a label xid: the code, and its copies `meaning` and `action`.
local copied(query) = 'label_replace(label_replace(%s, "meaning", "$1", "xid", "(.+)"), "action", "$1", "xid", "(.+)")' % query;
local inWords =
  p.column('What happened', { mappings: words(function(x) { text: x.meaning }, false) })
  + p.column('What to do', { mappings: words(function(x) { text: actions[x.action] }, false) })
  + p.column('XID', { mappings: words(function(x) {}), 'custom.cellOptions': { type: 'color-text' } });

local ago = { unit: 'dateTimeFromNow', 'custom.width': 122 };

{
  // expected is the number of boards that should be present: the most that each host had within a day or lists
  // now.
  expected(c):: 'sum(host:kpulse_gpus_expected:max1h%(r)s > host:kpulse_gpus_present:max1d%(r)s or host:kpulse_gpus_present:max1d%(r)s)' % { r: q.recorded(c) },

  // hereOfExpected returns the queries of a stat: the number of boards that are present, 0 without any series,
  // beside expected.
  hereOfExpected(c)::
    local here = '(sum(host:kpulse_gpus_present:count%s) or vector(0))' % q.recorded(c);
    local expected = self.expected(c);
    [
      p.instant('%s >= %s' % [here, expected], 'here'),
      p.instant('%s < %s' % [here, expected], 'only here'),
      p.instant(expected, 'expected'),
    ],

  // lost is gone, and the boards that disappeared within the time range and did not return: the board is on no
  // host, and its host has fewer boards than at some time in the range.
  lost(c)::
    |||
      (
        %(gone)s
        or
        max by (%(board)s) (last_over_time(device:kpulse_gpu_gone:timestamp%(recorded)s[$__range]))
          unless on (uuid) kpulse_gpu_present{%(only)suuid!=""} == 1
          unless on (%(host)s) host:kpulse_gpus_present:count%(recorded)s >= max_over_time(host:kpulse_gpus_present:max1d%(recorded)s[$__range:5m])
      )
    ||| % { board: labels.board(c), host: labels.host(c), recorded: q.recorded(c), only: c.kpulseMatchers, gone: q.gone(c) },

  // missingBoards is a table of lost, with the last XID and the holder of each.
  missingBoards(c)::
    local board = labels.board(c);
    // The last code of each board, as a label.
    local coded = |||
      (
        %(lost)s
        + on (%(board)s) group_left (xid)
          0 * topk by (%(board)s) (1, max by (%(board)s, xid) (device:kpulse_gpu_xid_seen:timestamp%(recorded)s))
        or on (%(board)s)
        %(lost)s
      )
    ||| % { lost: $.lost(c), board: board, recorded: q.recorded(c) };
    local held = |||
      0 * max by (%(board)s, %(holder)s) (last_over_time(allocation:kpulse_allocation_gone:info%(recorded)s[$__range]))
      + on (%(board)s) group_left (xid)
      %(coded)s
      or on (%(board)s)
      %(coded)s
    ||| % { board: board, holder: labels.holder(c), recorded: q.recorded(c), coded: coded };
    p.table(
      'Missing boards',
      'Boards that are gone, with the last XID and the last holder of each. Click a UUID for its history; the runbook of KpulseGPUMissing says what to do.',
      'none',
      [p.rows(q.most('1000 * (\n%s\n)' % held))]
    ) + p.sorted('Value') + p.renamed(labels.columns(c) + [
      ['Value', 'Gone'],
      ['xid', 'XID'],
      ['workload_namespace', 'Namespace'],
      ['workload_pod', 'Pod'],
      ['hpc_job', 'Job'],
    ]) + p.column('Gone', ago)
    + p.column('XID', { mappings: words(function(x) {}), 'custom.cellOptions': { type: 'color-text' } })
    + p.noValue('no board is known to be gone'),

  // ofHosts returns matchers of the alerts of a page of hosts, each with what the alerts must match too. For one host,
  // alerts about a proxy are selected by its address, and those about a job by its members.
  ofHosts(c)::
    local job = '%s, workload_namespace, workload_kind, workload_name, hpc_job' % c.clusterLabel;
    [
      ['hostname=~"$hostname"', ''],
      ['hostname="", instance=~"($hostname)([.:].*)?"', ''],
      ['hostname="", instance=""', ' and on (%s) gang:kpulse_allocation_member:info%s' % [job, q.recorded(c)]],
    ],
  // ofHolders returns the same for a page of holders: alerts about them, their boards and hosts. `held` is a query of
  // their devices, with the labels of the holders.
  ofHolders(c, held):: [
    [where[0], ' and on (%s, %s) %s' % [c.clusterLabel, where[1], held]]
    for where in [
      ['hpc_job!=""', 'hpc_job'],
      ['hpc_job="", workload_namespace!=""', 'workload_namespace'],
      ['hpc_job="", workload_namespace="", uuid!=""', 'hostname, uuid'],
      ['hpc_job="", workload_namespace="", uuid="", hostname!=""', 'hostname'],
    ]
  ],

  // alerts is a table of firing alerts.
  alerts(c, places=self.ofHosts(c))::
    local chosen(series, more) = std.join('\n  or\n  ', [
      '%s{alertname=~"Kpulse.*", %s=~"$cluster", %s%s}%s' % [series, c.clusterLabel, where[0], more, where[1]]
      for where in places
    ]);
    local by = '%s, alertname, severity, hostname, instance, gpu, uuid, workload_namespace, workload_kind, workload_name, hpc_job, hpc_account' % c.clusterLabel;
    // named adds the job, as the Job page knows it, and the proxy, namespace or account.
    local named(query) = std.foldl(
      function(inner, to) 'label_replace(%s, "%s", "%s", "%s", "(.+)")' % [inner, to[0], to[2], to[1]],
      [['job', 'hpc_job', '$1'], ['subject', 'hpc_account', '$1'], ['subject', 'workload_namespace', '$1'], ['subject', 'instance', '$1']],
      'label_replace(label_join(%s, "job", "/", "workload_namespace", "workload_kind", "workload_name"), "job", "", "job", "(.*/)?")' % query
    );
    local firing(more='') = chosen('ALERTS', ', alertstate="firing"' + more);
    local first = q.most('max by (%s) (%s)' % [by, q.ranked(
      function(matcher) '(%s)' % firing(', ' + matcher),
      'severity',
      [[c.criticalSeverity, 3]] + (if c.warningSeverity == c.criticalSeverity then [] else [[c.warningSeverity, 2]]),
    )]);
    p.table(
      'Alerts',
      'Firing alerts, the most urgent first; for a host, also those of its jobs. Subject: the proxy, namespace or account that it is about. Click a name to open its runbook, a UUID to open the GPU.',
      'none',
      [
        p.rows(named(first)),
        p.rows(named(q.among('1000 * max by (%s) (\n  (%s)\n  and ignoring (alertstate)\n  (%s)\n)' % [by, chosen('ALERTS_FOR_STATE', ''), firing()], first, by))),
      ]
    ) + p.joined + p.sorted('Value #B') + p.sorted('Value #A') + p.renamed([
      ['severity', 'Severity'],
      ['alertname', 'Alert'],
      ['Value #B', 'Since'],
    ] + labels.columns(c) + [
      ['job', 'Job'],
      ['subject', 'Subject'],
    ]) + p.column('Since', ago)
    // Of a workload only its name; the link has all.
    + p.column('Job', { mappings: [{ type: 'regex', options: { pattern: '/^[^/]*\\/[^/]*\\/(.*)$/', result: { index: 0, text: '$1' } } }] })
    + p.column('Severity', {
      'custom.cellOptions': { type: 'color-text' },
      mappings: p.valueMappings({ [c.infoSeverity]: { color: 'blue' }, [c.warningSeverity]: { color: 'orange' }, [c.criticalSeverity]: { color: 'red' } }),
    })
    + p.column('Alert', { links: [{ title: 'Open the runbook', url: c.runbookURLPattern % '${__value.raw}', targetBlank: true }] })
    + p.noValue('no alerts'),

  // came counts the XIDs of each board and code within a range of samples, such as $__range; more adds
  // matchers.
  came(c, range, more=''):: 'max by (%s, xid) (sum_over_time(device:kpulse_gpu_xid_errors:increase1m%s[%s]))' % [labels.board(c), q.recorded(c, more), range],

  // xidCodes is a table of the codes that occurred, in words; xidBoards lists the boards that they occurred on.
  xidCodes(c, more='', title='XID codes in words')::
    local came = self.came(c, '$__range', more);
    p.table(
      title,
      'XID codes in the time range, with meaning and action, the latest first; includes boards that were reset or are gone. On many boards at once: a program or a driver, not a board. 45 follows whatever ends a process.',
      'none',
      [
        p.rows(copied('sum by (xid) (%s)' % came)),
        p.rows(copied('count by (xid) (%s)' % came)),
        p.rows(copied('1000 * (max by (xid) (device:kpulse_gpu_xid_seen:timestamp%s) and on (xid) %s)' % [q.recorded(c, more), came])),
      ]
    ) + p.joined + p.sorted('Value #C') + p.renamed([
      ['xid', 'XID'],
      ['meaning', 'What happened'],
      ['action', 'What to do'],
      ['Value #A', 'Times'],
      ['Value #B', 'Boards'],
      ['Value #C', 'Last'],
    ]) + p.decimals(0) + p.column('Last', ago) + inWords + p.noValue('no XID came'),

  xidBoards(c)::
    local latest = q.most('1000 * (max by (%s, xid) (device:kpulse_gpu_xid_seen:timestamp%s) and on (%s, xid) %s)' % [labels.board(c), q.recorded(c), labels.board(c), self.came(c, '$__range')]);
    p.table(
      'XIDs by board',
      'XIDs of each board in the time range, the latest first; includes boards that were reset or are gone. `kpulse-proxy explain xid CODE` says more.',
      'none',
      [p.rows(copied(latest)), p.rows(copied('%s and on (%s, xid) %s' % [self.came(c, '$__range'), labels.board(c), latest]))]
    ) + p.joined + p.sorted('Value #A') + p.renamed(labels.columns(c) + [
      ['xid', 'XID'],
      ['action', 'What to do'],
      ['Value #B', 'Times'],
      ['Value #A', 'Last'],
    ]) + p.decimals(0) + p.column('Last', ago)
    + p.column('What to do', { mappings: words(function(x) { text: actions[x.action] }, false) })
    + p.column('XID', { mappings: words(function(x) {}), 'custom.cellOptions': { type: 'color-text' } })
    + p.noValue('no XID came'),
}

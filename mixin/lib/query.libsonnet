// Queries that several dashboards share; each is a function of _config.
local colors = import 'colors.libsonnet';
local labels = import 'labels.libsonnet';

local extreme(pick, over, n, series) = '%s(%d, %s_over_time((%s)[$__range:$__interval] @ end()))' % [pick, n, over, series];

{
  // raw selects series of the proxy within the dashboard's variables, and recorded those of the rules, which
  // have no job; `more` adds matchers to either.
  raw(c, more=''):: '{%s%s=~"$cluster", hostname=~"$hostname"%s}' % [c.kpulseMatchers, c.clusterLabel, more],
  recorded(c, more=''):: '{%s=~"$cluster", hostname=~"$hostname"%s}' % [c.clusterLabel, more],
  cluster(c, more=''):: '{%s=~"$cluster"%s}' % [c.clusterLabel, more],

  // ofJob selects recorded series of the job that the variables of variable.libsonnet's jobParts choose.
  ofJob(c, more=''):: self.cluster(c, std.join('', [', %s=~"$%s"' % [label, label] for label in ['hpc_job', 'workload_namespace', 'workload_kind', 'workload_name']]) + more),

  // some returns matchers that select series if values of a variable are chosen, and none if all are: with All,
  // `(.*.+.*)?` matches every value, so nothing is selected. With names chosen, it matches the empty value, which
  // the first matcher leaves out anyway, and a name that begins and ends with chosen ones, such as a-b-a beside a:
  // that one is lost if it is chosen too.
  some(label, variable):: ', %s=~"$%s", %s!~"($%s.+$%s)?"' % [label, variable, label, variable, variable],
  // held is GPUs held: from recorded series of a level, which is far less to read, or from each device if
  // values of a label are chosen that the level lacks. `over` is applied to either.
  held(c, level, what, label, variable, more='', over='%s')::
    '(%s\nor\n%s)' % [
      self.ofLevel(c, level, what, ', %s=~"$%s"' % [label, variable] + more, over),
      self.ofLevel(c, 'allocation', what, self.some(label, variable) + more, over),
    ],
  // ofLevel is the same from recorded series of one level.
  ofLevel(c, level, what, matchers, over='%s')::
    local of(what, more='') = over % ('%s:kpulse_allocation_%s_gpus:rate5m%s' % [level, what, self.cluster(c, matchers + more)]);
    // A holder that is never idle has no series of that class.
    if what == 'idle' && level != 'host' then self.or0(of('class', ', class="idle"'), of('held')) else of(what),
  // ofHolders is the devices of a query that takes matchers: all of them, or those that the chosen namespaces
  // hold in part or whole.
  ofHolders(c, devices)::
    '(%s\nor\n%s\nand on (%s)\nallocation:kpulse_allocation_held_gpus:rate5m%s)' % [
      devices(', workload_namespace=~"$namespace"'),
      devices(''),
      labels.device(c),
      self.recorded(c, self.some('workload_namespace', 'namespace')),
    ],

  // device and board return one series for each device or board, however often it is scraped.
  device(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.device(c), name, self.raw(c, more)],
  board(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.board(c), name, self.raw(c, more)],

  // holders counts the pods and jobs on each board and its instances: those of allocation_info, and 0 on a board
  // that no one holds.
  holders(c)::
    self.or0(
      'count by (%s) (max by (%s, workload_container, %s) (kpulse_allocation_info%s))' % [labels.board(c), labels.device(c), labels.holder(c), self.raw(c)],
      '(%s == 1)' % self.board(c, 'kpulse_gpu_present')
    ),

  // severity ranks boards by state: 4 gone, 3 crit, 2 warn, 1 hot, 0.5 unknown, 0 ok. A board that is gone has
  // no health and ranks worst; the proxy reports it for an hour, the rules for longer.
  severity(c, more='')::
    '(4 + 0 * %s\nor\n%s)' % [
      self.gone(c, more),
      labels.state(c, c.kpulseMatchers, ', %s=~"$cluster", hostname=~"$hostname"%s' % [c.clusterLabel, more]),
    ],
  // or0 returns 0 where a query has no sample but another has, or had within the range: a proxy may leave out a
  // gauge that does not hold.
  or0(query, other):: '%s\nor\n0 * %s' % [query, other],
  // highest returns, for the whole range, the n lines of a chart that have the highest value at any step. topk
  // alone selects at each step, and so draws dots, of many more than n lines. `by` is the labels of a line.
  highest(n, series, by):: '(%s)\nand on (%s)\n%s' % [series, by, extreme('topk', 'max', n, series)],
  lowest(n, series, by):: '(%s)\nand on (%s)\n%s' % [series, by, extreme('bottomk', 'min', n, series)],
  // rest is the sum of the lines that highest leaves out.
  rest(n, series, by):: 'sum(\n(%s)\nunless on (%s)\n%s\n)' % [series, by, extreme('topk', 'max', n, series)],

  // rows is the largest number of rows of a table, since longer tables are not read and slow the browser down.
  // most and least select that many series of a query.
  rows:: 200,
  most(query):: 'topk(%d, %s)' % [self.rows, query],
  least(query):: 'bottomk(%d, %s)' % [self.rows, query],
  // among limits a query to the labels of `chosen`.
  among(query, chosen, by):: '(%s)\nand on (%s)\n%s' % [query, by, chosen],
  // league returns queries limited to the series that are highest in the first.
  league(queries, by)::
    local chosen = self.most(queries[0]);
    [chosen] + [self.among(query, chosen, by) for query in queries[1:]],

  // ratio is absent if the divisor is 0, where a share is undefined.
  ratio(part, whole):: '%s\n/\n(%s > 0)' % [part, whole],

  // utilization is real utilization over the time for which it was known, by labels; `over` is applied to the seconds.
  utilization(by, matchers, over='%s')::
    local of(what) = 'sum by (%s) (%s)' % [by, over % ('device:kpulse_gpu_%s:rate5m%s' % [what, matchers])];
    self.ratio(of('utilized'), of('known')),

  // services are the kinds of workloads whose replicas serve requests on their own: none waits for another.
  services:: 'DaemonSet|Deployment|InferenceService|RayService|ReplicaSet|ReplicationController|Rollout|Service|StatefulSet',

  // straggling is the utilization of the selected devices below half of the median of their job, or workload if there
  // is no job, divided by that median: that of at least four devices, and at least 0.2. Other jobs wait as a whole.
  straggling(c, matchers='')::
    local of(gang, is) =
      local series(what, more) = 'allocation:kpulse_allocation_%s_gpus:rate5m{%s%s}' % [what, is, more];
      local utilization(more) = self.ratio(series('utilized', more), series('known', more));
      |||
        (
          %(selected)s
          / on (%(gang)s) group_left ()
          (
            quantile by (%(gang)s) (0.5, max by (%(gang)s, %(device)s) (%(all)s)) >= 0.2
            and on (%(gang)s)
            count by (%(gang)s) (max by (%(gang)s, %(device)s) (%(known)s > 0)) >= 4
          )
        ) < 0.5
      ||| % {
        gang: '%s, %s' % [c.clusterLabel, gang],
        device: 'hostname, gpu, uuid, mig_instance, mig_profile',
        selected: utilization(matchers),
        all: utilization(''),
        known: series('known', ''),
      };
    of('hpc_job', 'hpc_job!=""') + 'or\n' + of('workload_namespace, workload_kind, workload_name', 'hpc_job="", workload_name!=""'),

  // perHour and perMinute are errors as integers, counted like the alerts count them: over a window of many
  // scrapes, since the increase over a few scrapes is 1.33 for one error.
  perHour(name, selector, by):: 'round(max by (%s) (increase(%s%s[1h])))' % [by, name, selector],
  perMinute(name, selector, by):: '60 * max by (%s) (rate(%s%s[15m]))' % [by, name, selector],

  // ranked replaces the series of each value of a label by its rank, so that tables of words can be sorted by
  // meaning; other values have rank 0. Ranks are [[value, rank], ...].
  ranked(series, label, ranks)::
    std.join('\nor\n', ['%g * %s' % [r[1], series('%s="%s"' % [label, r[0]])] for r in ranks] + [
      '0 * %s' % series('%s!~"%s"' % [label, std.join('|', [r[0] for r in ranks])]),
    ]),
  severities:: {
    '0': { text: 'OK', color: 'green' },
    '0.5': { text: 'unknown', color: 'text' },
    '1': { text: 'HOT', color: colors.hot },
    '2': { text: 'WARN', color: 'orange' },
    '3': { text: 'CRIT', color: 'red' },
    '4': { text: 'GONE', color: 'red' },
  },

  // GPU-hours over the dashboard's range, from a series of GPUs that is recorded once a minute.
  gpuHours(series):: 'sum_over_time(%s[$__range]) / 60' % series,

  // gone is the Unix time since when each missing board is gone: as recorded, or now until the rules have seen
  // it. While the health of a missing board is unknown, it is not gone.
  gone(c, more='')::
    |||
      (
        max by (%(board)s) (device:kpulse_gpu_gone:timestamp%(recorded)s)
          unless on (%(board)s) %(present)s == 1
        or
        time() + (%(present)s == 0)
          unless on (%(host)s, gpu) device:kpulse_gpu_gone:timestamp%(recorded)s
          unless on (%(board)s) %(unknown)s == 1
      )
    ||| % { unknown: $.board(c, 'kpulse_gpu_health', ', state="unknown"' + more), board: labels.board(c), host: labels.host(c), recorded: $.recorded(c, more), present: $.board(c, 'kpulse_gpu_present', more) },
}

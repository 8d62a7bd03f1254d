// Queries that several dashboards share; each is a function of _config.
local labels = import 'labels.libsonnet';

local extreme(pick, over, n, series) = '%s(%d, %s_over_time((%s)[$__range:$__interval] @ end()))' % [pick, n, over, series];

{
  // raw selects series of the proxy itself within the dashboard's variables, recorded
  // those of the rules, which have no job; `more` adds matchers to either.
  raw(c, more=''):: '{%s%s=~"$cluster", hostname=~"$hostname"%s}' % [c.kpulseMatchers, c.clusterLabel, more],
  recorded(c, more=''):: '{%s=~"$cluster", hostname=~"$hostname"%s}' % [c.clusterLabel, more],
  cluster(c, more=''):: '{%s=~"$cluster"%s}' % [c.clusterLabel, more],

  // some are matchers for one or more chosen values of a variable, and for none while all are chosen: no name is itself twice
  // with something between, as all that matches `.*.+.*` is. Without them, a label that a series lacks matches `.*` only.
  some(label, variable):: ', %s=~"$%s", %s!~"($%s.+$%s)?"' % [label, variable, label, variable, variable],
  // held is GPUs that were held: of a level of what is recorded, which is far less to read, and of each device once some values
  // are chosen of a label that the level lacks. `over` is what becomes of either.
  held(c, level, what, label, variable, more='', over='%s')::
    local of(level, what, matchers) = over % ('%s:kpulse_allocation_%s_gpus:rate5m%s' % [level, what, self.cluster(c, matchers + more)]);
    local some = self.some(label, variable);
    '(%s\nor\n%s)' % [
      of(level, what, ', %s=~"$%s"' % [label, variable]),
      // A device that is never idle has no such class.
      if what == 'idle' then self.or0(of('allocation', 'class', some + ', class="idle"'), of('allocation', 'held', some)) else of('allocation', what, some),
    ],
  // ofHolders is devices, by a query of matchers: all of them, or those that the chosen namespaces hold something of.
  ofHolders(c, devices)::
    '(%s\nor\n%s\nand on (%s)\nallocation:kpulse_allocation_held_gpus:rate5m%s)' % [
      devices(', workload_namespace=~"$namespace"'),
      devices(''),
      labels.device(c),
      self.recorded(c, self.some('workload_namespace', 'namespace')),
    ],

  // device and board are one series of each device, or board, whatever scraped it.
  device(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.device(c), name, self.raw(c, more)],
  board(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.board(c), name, self.raw(c, more)],

  // severity ranks boards by their state of health: 4 gone, 3 crit, 2 warn, 1 hot, 0.5
  // unknown, 0 ok. What is gone has no health, and is the worst of all; the proxy tells of it
  // for an hour, the rules for longer.
  severity(c, more='')::
    '(4 + 0 * %s\nor\n%s)' % [
      self.gone(c, more),
      labels.state(c, c.kpulseMatchers, ', %s=~"$cluster", hostname=~"$hostname"%s' % [c.clusterLabel, more]),
    ],
  // or0 makes 0 of what a query lacks and another has, or that it had within the range: a
  // proxy may not serve what does not hold.
  or0(query, other):: '%s\nor\n0 * %s' % [query, other],
  // highest is the n lines of a chart that were the highest at any of its steps, for the whole
  // range: topk alone gives those of each step, which are dots, and of many more lines than
  // n. `by` is the labels of a line.
  highest(n, series, by):: '(%s)\nand on (%s)\n%s' % [series, by, extreme('topk', 'max', n, series)],
  lowest(n, series, by):: '(%s)\nand on (%s)\n%s' % [series, by, extreme('bottomk', 'min', n, series)],
  // rest is the sum of what highest leaves out.
  rest(n, series, by):: 'sum(\n(%s)\nunless on (%s)\n%s\n)' % [series, by, extreme('topk', 'max', n, series)],

  // rows is how many a table has at most: nobody reads more, and a browser takes long to draw
  // them. most and least are that many of what a query says.
  rows:: 200,
  most(query):: 'topk(%d, %s)' % [self.rows, query],
  least(query):: 'bottomk(%d, %s)' % [self.rows, query],
  // among is what a query says of those of `chosen`, by the labels of one of them.
  among(query, chosen, by):: '(%s)\nand on (%s)\n%s' % [query, by, chosen],
  // league is queries of those of which the first says most.
  league(queries, by)::
    local chosen = self.most(queries[0]);
    [chosen] + [self.among(query, chosen, by) for query in queries[1:]],

  // ratio has nothing where the divisor is 0: a part of nothing is not known, and not infinite.
  ratio(part, whole):: '%s\n/\n(%s > 0)' % [part, whole],

  // perHour and perMinute are whole errors as the alerts count them: over a window that holds
  // many scrapes, since an increase over few of them is 1.33 where one error came.
  perHour(name, selector, by):: 'round(max by (%s) (increase(%s%s[1h])))' % [by, name, selector],
  perMinute(name, selector, by):: '60 * max by (%s) (rate(%s%s[15m]))' % [by, name, selector],

  // ranked gives the series of each value of a label its rank, so that tables of words can
  // be ordered by what the words mean; values that are not listed have the rank 0. Ranks are
  // [[value, rank], ...].
  ranked(series, label, ranks)::
    std.join('\nor\n', ['%g * %s' % [r[1], series('%s="%s"' % [label, r[0]])] for r in ranks] + [
      '0 * %s' % series('%s!~"%s"' % [label, std.join('|', [r[0] for r in ranks])]),
    ]),
  severities:: {
    '0': { text: 'OK', color: 'green' },
    '0.5': { text: 'unknown', color: 'text' },
    '1': { text: 'HOT', color: 'yellow' },
    '2': { text: 'WARN', color: 'orange' },
    '3': { text: 'CRIT', color: 'red' },
    '4': { text: 'GONE', color: 'red' },
  },

  // GPU-hours over the dashboard's range, of a series of GPUs recorded once a minute.
  gpuHours(series):: 'sum_over_time(%s[$__range]) / 60' % series,

  // gone is since when each board that is gone is, in Unix time: as it was recorded, and until the rules have seen it, now.
  gone(c, more='')::
    |||
      (
        max by (%(board)s) (device:kpulse_gpu_gone:timestamp%(recorded)s)
          unless on (%(board)s) %(present)s == 1
        or
        time() + (%(present)s == 0)
          unless on (%(host)s, gpu) device:kpulse_gpu_gone:timestamp%(recorded)s
      )
    ||| % { board: labels.board(c), host: labels.host(c), recorded: $.recorded(c, more), present: $.board(c, 'kpulse_gpu_present', more) },
}

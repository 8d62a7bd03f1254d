// Queries that several dashboards share; each is a function of _config.
local labels = import 'labels.libsonnet';

{
  // raw selects series of the proxy itself within the dashboard's variables, recorded
  // those of the rules, which have no job; `more` adds matchers to either.
  raw(c, more=''):: '{%s%s=~"$cluster", hostname=~"$hostname"%s}' % [c.kpulseMatchers, c.clusterLabel, more],
  recorded(c, more=''):: '{%s=~"$cluster", hostname=~"$hostname"%s}' % [c.clusterLabel, more],
  cluster(c, more=''):: '{%s=~"$cluster"%s}' % [c.clusterLabel, more],

  // device and board are one series of each device, or board, whatever scraped it.
  device(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.device(c), name, self.raw(c, more)],
  board(c, name, more=''):: 'max by (%s) (%s%s)' % [labels.board(c), name, self.raw(c, more)],

  // severity ranks boards by their state of health: 3 crit, 2 warn, 1 hot, 0.5 unknown,
  // 0 ok.
  severity(c, more='')::
    labels.state(c, c.kpulseMatchers, ', %s=~"$cluster", hostname=~"$hostname"%s' % [c.clusterLabel, more]),
  // or0 makes 0 of what a query lacks and another has, or that it had within the range: a
  // proxy may not serve what does not hold.
  or0(query, other):: '%s\nor\n0 * %s' % [query, other],
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
    '1': { text: 'HOT', color: 'orange' },
    '2': { text: 'WARN', color: 'yellow' },
    '3': { text: 'CRIT', color: 'red' },
  },

  // GPU-hours over the dashboard's range, of a series of GPUs recorded once a minute.
  gpuHours(series):: 'sum_over_time(%s[$__range]) / 60' % series,
}

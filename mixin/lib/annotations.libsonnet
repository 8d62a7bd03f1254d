// Annotations: events, as marks in every chart of a page. The variables of the page decide which events, and of
// which boards.
local labels = import 'labels.libsonnet';
local q = import 'query.libsonnet';

local annotation(name, color, enable, expr, title, tags) = {
  name: name,
  datasource: { type: 'prometheus', uid: '${datasource}' },
  enable: enable,
  hide: false,
  iconColor: color,
  expr: expr,
  // The smallest step. For ranges beyond 1,600 minutes Grafana uses a larger one, so the windows below are
  // $__interval, not a minute.
  step: '1m',
  titleFormat: title,
  // Labels as tags: in a title, Grafana prints the name of a label that is missing.
  tagKeys: tags,
};

{
  // of returns the annotations of a page with these variables. Every page has alerts. A page of one host or GPU
  // also shows its events; on pages of many hosts they can be switched on.
  of(c, variables):: {
    local named = { [v.name]: v for v in variables },
    local has(name) = std.objectHas(named, name),
    local one(name) = has(name) && !named[name].multi,
    local cluster = '%s=~"$cluster"' % c.clusterLabel,
    local board = cluster + ', ' + if has('gpu') then 'uuid=~"$gpu"' else 'hostname=~"$hostname"',
    local close = one('gpu') || one('hostname') || one('job'),
    // Selectors of the page's alerts. Alerts about a proxy have an address but no hostname.
    local alerted =
      if has('gpu') then [board]
      else if has('job') then [board, 'hostname="", ' + std.substr(q.ofJob(c), 1, std.length(q.ofJob(c)) - 2)]
      else if has('hostname') then [board, cluster + ', hostname="", instance=~"($hostname)([.:].*)?"']
      else if has('instance') then [cluster + ', instance=~"$instance", instance!=""']
      else [cluster],
    local raw(name, more='') = '%s{%s%s%s}' % [name, c.kpulseMatchers, board, more],
    local event(name, color, expr, title, tags) = annotation(name, color, close, expr, title, tags),

    list: [
            annotation(
              'Alerts',
              'red',
              true,
              'max by (alertname, severity%s) (%s)' % [
                if close then ', hostname, gpu' else '',
                std.join(' or ', ['max_over_time(ALERTS{alertname=~"Kpulse.*", alertstate="firing", %s}[$__interval])' % selector for selector in alerted]),
              ],
              '{{alertname}}',
              'severity' + if close then ',hostname,gpu' else ''
            ),
          ] + (if has('hostname') || has('gpu') then [
                 event(
                   'XIDs',
                   'orange',
                   'max by (%s, xid) (increase(%s[$__rate_interval])) > 0' % [labels.board(c), raw('kpulse_gpu_xid_errors_total')],
                   'XID {{xid}}',
                   'hostname,gpu'
                 ),
                 // Both reset the board's energy counter.
                 event(
                   'GPU resets',
                   'purple',
                   'max by (%s) (resets(%s[$__rate_interval])) > 0' % [labels.board(c), raw('kpulse_gpu_energy_joules_total')],
                   'GPU reset, or driver loaded',
                   'hostname,gpu'
                 ),
                 event(
                   'MIG re-cuts',
                   'blue',
                   |||
                     count by (%(board)s) (
                       (
                         max by (%(device)s) (%(instance)s)
                         unless
                         max by (%(device)s) (%(instance)s offset $__interval)
                       )
                       or
                       (
                         max by (%(device)s) (%(instance)s offset $__interval)
                         unless
                         max by (%(device)s) (%(instance)s)
                       )
                     )
                     and on (%(board)s) max by (%(board)s) (%(present)s == 1)
                     and on (%(board)s) max by (%(board)s) (%(present)s offset $__interval == 1)
                   ||| % { board: labels.board(c), device: labels.device(c), instance: raw('kpulse_gpu_info', ', mig_instance!=""'), present: raw('kpulse_gpu_present') },
                   'MIG instances reconfigured',
                   'hostname,gpu'
                 ),
               ] else [])
          + (if has('hostname') || has('gpu') then [
               // Detected by its ledger, which restarts from 0, because the proxy's telemetry may not be
               // scraped.
               event(
                 'Proxy restarts',
                 '#6e7077',
                 'max by (%s) (resets(%s[$__rate_interval])) > 0' % [labels.host(c), raw('kpulse_gpu_observed_seconds_total')],
                 'kpulse-proxy restarted',
                 'hostname'
               ),
             ] else if has('instance') then [
               annotation(
                 'Proxy restarts',
                 '#6e7077',
                 true,
                 'max by (%s, instance) (changes(process_start_time_seconds{%s, %s, instance=~"$instance"}[$__rate_interval])) > 0' % [c.clusterLabel, c.telemetrySelector, cluster],
                 '{{instance}} restarted',
                 'instance'
               ),
             ] else []),
  }.list,
}

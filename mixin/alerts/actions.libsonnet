// Alerts about boards by recommended action (kpulse_gpu_recommended_action). The proxy derives it from all
// conditions and from the driver's recovery action, so no alert names an XID.
local conditions = import '../lib/conditions.libsonnet';
local labels = import '../lib/labels.libsonnet';

{
  local c = $._config { board: labels.board($._config) },

  // The conditions that these alerts cover; the others have alerts of their own.
  local told = std.join('|', [name for name in std.objectFields(conditions) if conditions[name].byAction]),

  local asked(action) = labels.now(c, 'kpulse_gpu_recommended_action', 'action="%s"' % action),
  local raised(states) = labels.now(c, 'kpulse_gpu_health_condition', 'condition=~"%s"%s' % [told, states]),

  // The raised conditions of a board, and its XIDs within a day, as long as a fatal one counts.
  local list(query, name, none) =
    '{{ range $i, $r := printf `%s` $labels.uuid | query | sortByLabel "%s" }}{{ if $i }}, {{ end }}%s{{ else }}%s{{ end }}'
    % [query, name, if name == 'condition' then '{{ $r.Labels.condition }} ({{ $r.Labels.state }})' else '{{ $r.Labels.xid }}', none],
  local reasons = list(
    'max by (condition, state) (last_over_time(kpulse_gpu_health_condition{%suuid="%%s"}[5m])) == 1' % c.kpulseMatchers,
    'condition',
    'no condition'
  ),
  // Codes whose count differs from that of a day ago.
  local count = 'last_over_time(kpulse_gpu_xid_errors_total{%suuid="%%[1]s"}[5m]%s)',
  local xids = list(
    'max by (xid) (%s unless %s == %s)' % [count % [c.kpulseMatchers, ''], count % [c.kpulseMatchers, ''], count % [c.kpulseMatchers, ' offset 1d']],
    'xid',
    'none'
  ),

  local alert(name, severity, wait, hold, summary, expr) = {
    alert: name,
    expr: expr,
    'for': wait,
    [if hold != null then 'keep_firing_for']: hold,
    labels: { severity: severity },
    annotations: {
      summary: labels.gpuName + ': ' + summary + labels.holderWords(c),
      description: labels.gpuWords + ': ' + summary + ' Raised: ' + reasons + '. XIDs in the last day: ' + xids + '.' + labels.holderWords(c),
    },
  },

  // tiers returns two alerts of one name: critical if a condition is critical, otherwise a warning, as for a
  // remapped row that takes effect with the next reset. Boards that are gone, or that only a switch makes crit,
  // have alerts of their own.
  //
  // Two minutes give the driver three readings, in which it may withdraw its request; draining a node takes
  // longer anyway. A warning waits for a quarter of an hour, since it does not wake anyone. KpulseGPUMissing
  // covers a board that falls off the bus ten minutes later; until then keep_firing_for keeps the last alert.
  //
  // After a day that resolved nothing, a fatal XID asks for nothing any more, but its board is not known to be fit
  // either: the alert lasts until it is.
  local lasting(name) = |||
    or
    (
      max by (%(board)s) (last_over_time(ALERTS{alertname="%(name)s", alertstate="firing", severity="%(criticalSeverity)s"}[1h]))
      and on (%(board)s)
      max by (%(board)s) (kpulse_gpu_health{%(kpulseMatchers)sstate="unknown"}) == 1
      and on (%(board)s)
      max by (%(board)s) (kpulse_gpu_present%(kpulseOnly)s) == 1
    )
  ||| % c { name: name },
  local tiers(name, action, summary) = [
    alert(name, c.criticalSeverity, '2m', '10m', summary, asked(action) + 'and on (%(board)s)\n' % c + raised(', state="crit"') + lasting(name)),
    alert(name, c.warningSeverity, '15m', null, summary, asked(action) + 'and on (%(board)s)\n' % c + raised('') + 'unless on (%(board)s)\n' % c + raised(', state="crit"')),
  ],

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-actions',
      rules: [
               // The error has already passed when it is reported, so waiting gains nothing.
               alert(
                 'KpulseGPURestartApplication',
                 c.infoSeverity,
                 '0m',
                 '15m',
                 'its programs need a restart.',
                 asked('restart_application')
               ),
               // XIDs that warn raise their condition for ten minutes. Links and fabrics that recover within
               // five raise no alert.
               alert(
                 'KpulseGPUCheckHardware',
                 c.warningSeverity,
                 '5m',
                 null,
                 'the board or its connections need a check.',
                 asked('check_hardware') + 'and on (%(board)s)\n' % c + raised('')
               ),
             ] + tiers('KpulseGPUResetNeeded', 'reset_gpu', 'needs a reset.')
             + tiers('KpulseGPURestartVM', 'restart_vm', 'its virtual machine needs a restart.')
             + tiers('KpulseGPURebootNeeded', 'reboot_node', 'its node needs a reboot.')
             + tiers('KpulseGPUReplace', 'replace', 'needs to be replaced.'),
    }],
  },
}

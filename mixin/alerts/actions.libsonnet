// Alerts about boards by what has to be done, as kpulse_gpu_recommended_action says. The
// proxy concludes it from all conditions and from what the driver itself asks for, so that
// no XID is named here.
local conditions = import '../lib/conditions.libsonnet';
local labels = import '../lib/labels.libsonnet';

{
  local c = $._config { board: labels.board($._config) },

  // Conditions that these alerts tell of: the others have alerts of their own.
  local told = std.join('|', [name for name in std.objectFields(conditions) if conditions[name].byAction]),

  local asked(action) = labels.now(c, 'kpulse_gpu_recommended_action', 'action="%s"' % action),
  local raised(states) = labels.now(c, 'kpulse_gpu_health_condition', 'condition=~"%s"%s' % [told, states]),

  // What is raised on the board, and which XIDs it had within a day: for so long a fatal one
  // counts.
  local list(query, name, none) =
    '{{ range $i, $r := printf `%s` $labels.uuid | query | sortByLabel "%s" }}{{ if $i }}, {{ end }}%s{{ else }}%s{{ end }}'
    % [query, name, if name == 'condition' then '{{ $r.Labels.condition }} ({{ $r.Labels.state }})' else '{{ $r.Labels.xid }}', none],
  local reasons = list(
    'max by (condition, state) (last_over_time(kpulse_gpu_health_condition{%suuid="%%s"}[5m])) == 1' % c.kpulseMatchers,
    'condition',
    'no condition'
  ),
  // Codes whose count is not what it was a day ago.
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

  // tiers are two alerts of one name: critical where a condition is, and a warning where none
  // is, as with a remapped row that a reset would bring into use whenever there is time.
  //
  // Two minutes give the driver three readings, in which it may say that nothing has to be
  // done, and whoever drains takes longer. What is not critical has a quarter of an hour:
  // nobody is woken for it. A board that falls off the bus is told of by KpulseGPUMissing ten
  // minutes later; until then keep_firing_for holds what it said last.
  local tiers(name, action, summary) = [
    alert(name, c.criticalSeverity, '2m', '10m', summary, asked(action) + 'and on (%(board)s)\n' % c + raised(', state="crit"')),
    alert(name, c.warningSeverity, '15m', null, summary, asked(action) + 'unless on (%(board)s)\n' % c + raised(', state="crit"')),
  ],

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-actions',
      rules: [
               // The error is over when it is told of, so there is nothing to wait for.
               alert(
                 'KpulseGPURestartApplication',
                 c.infoSeverity,
                 '0m',
                 null,
                 'its programs need a restart.',
                 asked('restart_application')
               ),
               // XIDs that warn raise their condition for ten minutes; links and fabrics that settle
               // within five are left alone.
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

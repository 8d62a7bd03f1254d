// Alerts about GPUs, except those by recommended action (actions.libsonnet). They use conditions and counters,
// never the health state alone, in which warn hides hot. Of counters that cover a board's whole life they use
// the increase, so that old damage does not page.
local labels = import '../lib/labels.libsonnet';

{
  local c = $._config {
    board: labels.board($._config),
    host: labels.host($._config),
  },
  local gpu = labels.gpuWords,
  local holder = labels.holderWords(c),

  // raised returns the boards on which any of the conditions holds.
  local raised(conditions) = labels.now(c, 'kpulse_gpu_health_condition', 'condition=~"%s"' % std.join('|', conditions)),

  // slowed is the share of ten minutes in which a reason held clocks down, relative to the scrapes in which the
  // board was present, since a reason that does not hold may be left out.
  local slowed(reasons) = |||
    max by (%(board)s) (
      max by (%(board)s, reason) (sum_over_time(kpulse_gpu_clock_event_active{%(kpulseMatchers)sreason=~"%(reasons)s"}[10m]))
      / on (%(board)s) group_left ()
      max by (%(board)s) (count_over_time(kpulse_gpu_present%(kpulseOnly)s[10m]))
    )
  ||| % c { reasons: reasons },

  // alert is an alert about one board.
  local alert(name, severity, wait, hold, summary, description, expr) = {
    alert: name,
    expr: expr,
    'for': wait,
    [if hold != null then 'keep_firing_for']: hold,
    labels: { severity: severity },
    annotations: { summary: labels.gpuName + ': ' + summary + holder, description: gpu + ': ' + description + holder },
  },

  // switchAlert is an alert about errors of a switch. A code appears with its first error, as 0 for a minute (as 1 from
  // older proxies). A code that returns after an outage is not new.
  local switchAlert(severity, matcher, what, more) =
    local words = c { switch: c.host + ', pci_bus_id, sxid', errors: 'kpulse_nvswitch_sxid_errors_total{%s%s}' % [c.kpulseMatchers, matcher] };
    {
      alert: 'KpulseNVSwitchErrors',
      expr: (|||
               max by (%(switch)s) (increase(%(errors)s[15m])) > 0
               or
               (
                 clamp_min(max by (%(switch)s) (%(errors)s), 1)
                 unless
                 max by (%(switch)s) (last_over_time(%(errors)s[6h] offset 15m))
               )
             ||| + more) % words,
      'for': '0m',
      keep_firing_for: '15m',
      labels: { severity: severity },
      annotations: {
        summary: 'An NVSwitch on {{ $labels.hostname }} reports %s {{ $labels.sxid }}.' % what,
        description: 'NVSwitch {{ $labels.pci_bus_id }} on {{ $labels.hostname }}: %s {{ $labels.sxid }} occurred {{ $value | humanize }} times%s.'
                     % [what, if more == '' then ' in the last 15 minutes' else ''],
      },
    },

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-gpu',
      rules: [
        {
          alert: 'KpulseGPUMissing',
          // A board that is missing is gone only if its health is crit; while it is unknown, it may return. If the
          // proxy has forgotten a board, recorded series identify it, or else show that its host had more boards
          // within a week. The proxy's verdict itself takes a minute, so one more is enough. The cause of a lost GPU
          // often makes scrapes fail too, so all terms look back five minutes, and a failed scrape does not reset
          // `for`. Where there is no verdict, a loss must last longer, as GPUs may be slow to start. If an index
          // lacks its board, the alert names the last one. Of a source that lists held GPUs only, the other boards
          // have health but no presence.
          expr: |||
            (
              max by (%(board)s) (last_over_time(kpulse_gpu_present{%(kpulseMatchers)suuid!=""}[5m])) == 0
              unless on (%(board)s)
              %(unknown)s
            )
            or
            0 * max by (%(board)s) (device:kpulse_gpu_gone:timestamp{uuid!=""})
            or
            (
              max by (%(board)s) (max_over_time(kpulse_gpu_present{%(kpulseMatchers)suuid=""}[5m])) == 0
              unless on (%(host)s, gpu)
              device:kpulse_gpu_gone:timestamp{uuid!=""}
              unless on (%(board)s)
              kpulse_gpu_health{%(kpulseMatchers)sstate="unknown"} == 1
            )
            or
            (
              max by (%(host)s) (max_over_time(host:kpulse_gpus_present:max1d[1w:6h]) > host:kpulse_gpus_present:max1d or host:kpulse_gpus_present:max1d)
              - on (%(host)s)
              max by (%(host)s) (max_over_time(host:kpulse_gpus_present:count[9m]))
              > 0
              unless on (%(host)s)
              (
                max by (%(board)s) (max_over_time(kpulse_gpu_present%(kpulseOnly)s[5m])) == 0
                or
                max by (%(board)s) (device:kpulse_gpu_gone:timestamp)
                or
                max by (%(board)s) (kpulse_gpu_health%(kpulseOnly)s)
                  unless on (%(board)s) max by (%(board)s) (kpulse_gpu_present%(kpulseOnly)s)
              )
            )
          ||| % c { unknown: std.strReplace(std.rstripChars(labels.now(c, 'kpulse_gpu_health', 'state="unknown"'), '\n'), '\n', '\n  ') },
          'for': '1m',
          keep_firing_for: '15m',
          labels: { severity: c.criticalSeverity },
          annotations: {
            summary: '{{ $labels.hostname }} has lost {{ with $labels.uuid }}GPU {{ $labels.gpu }}{{ else }}a GPU{{ end }}.' + labels.lastHolderWords(c),
            description: '{{ $labels.hostname }} is missing {{ with $labels.uuid }}GPU {{ $labels.gpu }} ({{ . }}){{ else }}a GPU{{ end }}, which was there before, or is expected there; the readings of its other GPUs continue.' + labels.lastHolderWords(c),
          },
        },
        alert(
          'KpulseGPUUncorrectableECC',
          c.criticalSeverity,
          '0m',
          '15m',
          'uncorrectable memory errors.',
          'double-bit errors, or rows remapped because of them, in the last 15 minutes; programs on it have read wrong data or have died.',
          raised(['ecc_double_bit']) + |||
            or
            max by (%(board)s) (increase(kpulse_gpu_remapped_rows_total{%(kpulseMatchers)sseverity="uncorrectable"}[15m])) > 0
          ||| % c
        ),
        alert(
          'KpulseGPUCorrectableECCRate',
          c.infoSeverity,
          '30m',
          null,
          'many corrected memory errors.',
          '{{ $value | humanize }} corrected errors in the last hour.',
          |||
            max by (%(board)s) (
              increase(kpulse_gpu_ecc_errors_total{%(kpulseMatchers)sseverity="correctable", scope="volatile"}[1h])
            ) > %(correctableECCPerHour)g
          ||| % c
        ),
        alert(
          'KpulseGPUPCIeReplayRate',
          c.warningSeverity,
          '30m',
          null,
          'its PCIe link keeps replaying packets.',
          '{{ $value | humanize }} replays per minute.',
          |||
            60 * max by (%(board)s) (
              rate(kpulse_gpu_pcie_replays_total%(kpulseOnly)s[15m])
            ) > %(pcieReplaysPerMinute)g
          ||| % c
        ),
        alert(
          'KpulseGPUNVLinkErrors',
          c.warningSeverity,
          '15m',
          null,
          'NVLink errors.',
          '{{ $value | humanize }} errors in the last 15 minutes.',
          // A recovery is also of kind recovery_successful or recovery_failed. Up to ten errors are not much: the
          // condition nvlink_errors has the same limit.
          |||
            sum by (%(board)s) (
              max by (%(board)s, kind) (increase(kpulse_gpu_nvlink_errors_total{%(kpulseMatchers)skind!="recovery_event"}[15m]))
            ) > 10
          ||| % c
        ),
        // A fatal error is told for as long as it puts the boards of its host into crit.
        switchAlert(
          c.criticalSeverity,
          'severity="fatal"',
          'a fatal error: SXID',
          |||
            or
            (
              clamp_min(max by (%(switch)s) (kpulse_nvswitch_sxid_errors_total{%(kpulseMatchers)sseverity="fatal"}), 1)
              and on (%(host)s)
              kpulse_gpu_health_condition{%(kpulseMatchers)scondition="nvswitch"} == 1
            )
            or
            max by (%(switch)s) (kpulse_nvswitch_fatal_sxid%(kpulseOnly)s)
          |||
        ),
        switchAlert(c.infoSeverity, 'severity!="fatal"', 'SXID', ''),
        alert(
          'KpulseGPUThermalThrottling',
          c.warningSeverity,
          '15m',
          null,
          'throttled by heat.',
          'clocks held down for {{ $value | humanizePercentage }} of the last 10 minutes.',
          |||
            max by (%(board)s) (rate(kpulse_gpu_throttled_seconds_total{%(kpulseMatchers)sreason="thermal"}[10m])) > %(thermalThrottleShareThreshold)g
            or
          ||| % c + slowed('sw_thermal|hw_thermal') + '> %(thermalThrottleShareThreshold)g\n' % c
        ),
        alert(
          'KpulseGPUPowerBrake',
          c.warningSeverity,
          '15m',
          null,
          'slowed by the power brake.',
          'the power brake was on for {{ $value | humanizePercentage }} of the last 10 minutes.',
          slowed('hw_power_brake') + '> %(powerBrakeShareThreshold)g\n' % c
        ),
        alert(
          'KpulseGPUHot',
          c.warningSeverity,
          '15m',
          null,
          'too hot.',
          'the GPU or its memory is above the warning temperature of its model.',
          // A share, since a board at its limit is hot at every second scrape.
          |||
            max by (%(board)s) (sum_over_time(kpulse_gpu_health_condition{%(kpulseMatchers)scondition=~"gpu_temperature|memory_temperature"}[15m]))
            / on (%(board)s)
            max by (%(board)s) (count_over_time(kpulse_gpu_present%(kpulseOnly)s[15m]))
            > 0.4
          ||| % c
        ),
        alert(
          'KpulseGPUProfilingStalled',
          c.warningSeverity,
          '5m',
          null,
          'its profiling counters have stalled.',
          'it is busy, but all profiling readings are 0; its real utilization and class are unknown until the host engine is restarted.',
          raised(['profiling_stalled'])
        ),
      ],
    }],
  },
}

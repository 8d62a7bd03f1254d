// Alerts about the proxy and its sources. They come first: while one of them fires, alerts about GPUs may be
// silent for lack of data.
local labels = import '../lib/labels.libsonnet';

{
  local c = $._config {
    host: labels.host($._config),
    optional: std.join('|', $._config.optionalFields),
  },

  // memory selects the firing alerts of a name: what an alert is about is known for as long as it lasts, though
  // the series that showed it are older than the look-back. An hour bridges a restart of Prometheus.
  local memory(name) = 'last_over_time(ALERTS{alertname="%s", alertstate="firing"}[1h])' % name,

  // proxies limits targets to proxies: those that served kpulse_build_info within the last day, under any job
  // name, and those that are told to be down.
  local proxies = |||
    and on (%(clusterLabel)s, job, instance)
    (
      last_over_time(kpulse_build_info%(kpulseOnly)s[1d])
      or
      %(memory)s
    )
  ||| % c { memory: memory('KpulseProxyInstanceDown') },

  // flaps is the share of readings that succeed where less than 70 % do, and not for one outage or two: what
  // comes and goes never lasts as long as `for`. A reboot of eight minutes leaves 73 %.
  local flaps(series) = '(avg_over_time(%(of)s[30m]) < 0.7 and changes(%(of)s[30m]) >= 6)\n' % { of: series },

  // The first five of the proxies that are down, and the number of the others.
  local firstDown =
    ('{{ range $i, $r := printf `max by (instance) (up{%(clusterLabel)s=%%q} == 0 %(proxies)s)` $labels.%(clusterLabel)s | query | sortByLabel "instance" }}{{ if lt $i 5 }}{{ if $i }}, {{ end }}{{ $r.Labels.instance }}{{ end }}{{ end }}' +
     '{{ with printf `count(count by (instance) (up{%(clusterLabel)s=%%q} == 0 %(proxies)s)) - 5 > 0` $labels.%(clusterLabel)s | query }} and {{ . | first | value }} more{{ end }}')
    % c { proxies: std.strReplace(std.rstripChars(proxies, '\n'), '\n', ' ') },

  // lost is an alert about the share of a stream's ticks that the proxy did not receive.
  local lost(name, counter, more, summary, description) = {
    alert: name,
    expr: |||
      max by (%(stream)s) (rate(%(counter)s%(kpulseOnly)s[15m]))
      / on (%(stream)s)
      max by (%(stream)s) (rate(kpulse_source_ticks_total%(kpulseOnly)s[15m])%(more)s)
      > %(lostTicksShare)g
    ||| % (c { stream: '%s, instance, source, stream' % c.clusterLabel, counter: counter, more: more % c }),
    'for': '15m',
    labels: { severity: c.warningSeverity },
    annotations: { summary: summary, description: description },
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'kpulse-proxy',
      rules: [
        {
          alert: 'KpulseProxyDown',
          // One alert for a cluster: behind a dead switch are many proxies.
          expr: |||
            count by (%(clusterLabel)s) (
              up == 0
              %(proxies)s
            )
            unless on (%(clusterLabel)s)
            count by (%(clusterLabel)s) (kpulse_build_info%(kpulseOnly)s)
          ||| % c { proxies: std.strReplace(std.rstripChars(proxies, '\n'), '\n', '\n  ') },
          'for': '15m',
          labels: { severity: c.criticalSeverity },
          annotations: {
            summary: 'No kpulse-proxy{{ with $labels.%s }} of {{ . }}{{ end }} can be scraped.' % c.clusterLabel,
            description: 'No kpulse-proxy seen in the last day answers, or each answers 502 because it cannot read any of its sources: no GPU is monitored. Down: ' + firstDown + '.',
          },
        },
        {
          alert: 'KpulseProxyInstanceDown',
          // A proxy that cannot read any of its sources answers 502, so only `up` shows it.
          expr: '(\n  %s  or\n  up == 0\n)\n' % flaps('up') + proxies,
          'for': '15m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: 'A kpulse-proxy cannot be scraped.',
            description: '{{ $labels.instance }} {{ if $value }}answers only {{ $value | humanizePercentage }} of the scrapes; it fails, {{ else }}does not answer, {{ end }}or answers 502 because it cannot read any of its sources: the GPUs of this host are not monitored.',
          },
        },
        {
          alert: 'KpulseUpstreamDown',
          // One source of several; KpulseProxyInstanceDown tells of all, as they fail the scrape.
          expr: flaps('kpulse_source_up' + c.kpulseOnly) + |||
            or
            kpulse_source_up%(kpulseOnly)s == 0
          ||| % c,
          'for': '15m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: 'A source of GPU readings is down.',
            description: '{{ $labels.instance }} gets {{ if $value }}only {{ $value | humanizePercentage }} of the{{ else }}no{{ end }} readings from {{ $labels.source }}; its landing page (/) shows the cause and the remedy.',
          },
        },
        {
          alert: 'KpulseUpstreamStale',
          // KpulseUpstreamDown tells of a source that fails.
          expr: |||
            (
              time() - max by (%(clusterLabel)s, instance, source) (kpulse_source_last_read_timestamp_seconds%(kpulseOnly)s) > %(sourceStaleSeconds)d
              or
              max by (%(clusterLabel)s, instance, source) (kpulse_source_unchanged_seconds%(kpulseOnly)s) > %(sourceUnchangedSeconds)d
                unless on (%(clusterLabel)s, instance, source)
                kpulse_source_devices%(kpulseOnly)s == 0
            )
            unless on (%(clusterLabel)s, instance, source)
            kpulse_source_up%(kpulseOnly)s == 0
          ||| % c,
          'for': '2m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: 'GPU readings have stopped changing.',
            description: '{{ $labels.source }} on {{ $labels.instance }} serves old values: its last reading, or its last change, is {{ $value | humanizeDuration }} old. The exporter or the driver hangs.',
          },
        },
        {
          alert: 'KpulseUpstreamWithoutGPUs',
          // As of an exporter that started before the driver. KpulseGPUMissing does not tell these boards: of a
          // page without any board, none is gone.
          expr: |||
            max by (%(clusterLabel)s, instance, source) (kpulse_source_devices%(kpulseOnly)s) == 0
            and on (%(clusterLabel)s, instance, source)
            kpulse_source_up%(kpulseOnly)s == 1
            and on (%(clusterLabel)s, instance)
            (
              max by (%(clusterLabel)s, instance) (max_over_time(kpulse_source_devices%(kpulseOnly)s[1d])) > 0
              or
              max by (%(clusterLabel)s, instance) (kpulse_gpu_present%(kpulseOnly)s) == 0
              or
              max by (%(clusterLabel)s, instance) (%(memory)s)
            )
          ||| % c { memory: memory('KpulseUpstreamWithoutGPUs') },
          'for': '5m',
          labels: { severity: c.criticalSeverity },
          annotations: {
            summary: 'A source of GPU readings lists no GPU.',
            description: '{{ $labels.source }} on {{ $labels.instance }} answers without any GPU, but had or should have some: none of them is monitored.',
          },
        },
        {
          alert: 'KpulseUpstreamSlow',
          expr: |||
            max by (%(clusterLabel)s, instance, source) (
              avg_over_time(kpulse_source_read_duration_seconds%(kpulseOnly)s[5m])
            ) > %(sourceSlowShare)g * %(scrapeIntervalSeconds)d
          ||| % c,
          'for': '15m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: 'A source of GPU readings is slow.',
            description: 'Reading {{ $labels.source }} on {{ $labels.instance }} takes {{ $value | humanizeDuration }}: scrapes will soon time out.',
          },
        },
        lost(
          'KpulseSourceMissingTicks',
          'kpulse_source_ticks_missed_total',
          ' + rate(kpulse_source_ticks_missed_total%(kpulseOnly)s[15m])',
          'A proxy misses readings of its GPUs.',
          '{{ $labels.instance }} missed {{ $value | humanizePercentage }} of the readings of {{ $labels.source }} (stream {{ $labels.stream }}) in the last 15 minutes: what happened between the others went unseen.'
        ),
        lost(
          'KpulseSourceEvicting',
          'kpulse_source_ticks_evicted_total',
          '',
          'A proxy is too slow for its GPU readings.',
          '{{ $labels.instance }} dropped {{ $value | humanizePercentage }} of the readings of {{ $labels.source }} (stream {{ $labels.stream }}) in the last 15 minutes, because newer ones arrived before they were processed.'
        ),
        {
          alert: 'KpulseParseErrors',
          expr: |||
            max by (%(clusterLabel)s, instance, source) (
              increase(kpulse_source_skipped_lines_total%(kpulseOnly)s[15m])
            ) > 0
          ||| % c,
          'for': '15m',
          labels: { severity: c.warningSeverity },
          annotations: {
            summary: 'A source serves malformed lines.',
            description: '{{ $value | humanize }} lines of {{ $labels.source }} on {{ $labels.instance }} were left out in the last 15 minutes; with them, Prometheus would reject the whole scrape.',
          },
        },
        {
          alert: 'KpulseRequiredFieldMissing',
          expr: |||
            max by (%(clusterLabel)s, instance, source, field) (kpulse_source_field_missing{%(kpulseMatchers)sfield!~"%(optional)s"}) == 1
            and on (%(clusterLabel)s, instance, source)
            max by (%(clusterLabel)s, instance, source) (kpulse_source_devices%(kpulseOnly)s) > 0
          ||| % c,
          'for': '30m',
          labels: { severity: c.infoSeverity },
          annotations: {
            summary: 'A reading that real utilization, class or health needs is missing.',
            description: '{{ $labels.source }} on {{ $labels.instance }} does not give kpulse_{{ $labels.field }}: real utilization, class or health is computed without it, or is unknown.',
          },
        },
      ],
    }],
  },
}

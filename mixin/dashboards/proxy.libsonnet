// Proxy: can the other dashboards be trusted? What the proxies read, and what they cost.
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local raw(name, more='') = '%s{%s%s=~"$cluster", instance=~"$instance"%s}' % [name, c.kpulseMatchers, c.clusterLabel, more],
  local own(name, more='') = '%s{%s, %s=~"$cluster", instance=~"$instance"%s}' % [name, c.telemetrySelector, c.clusterLabel, more],
  local source = '%s, instance, source' % c.clusterLabel,
  local bySource(name) = 'max by (%s) (%s)' % [source, raw(name)],
  // missing is the inputs that a source lacks; one without a device lacks nothing.
  local missing = 'max by (%s, field) (%s) == 1 and on (%s) %s > 0' % [source, raw('kpulse_source_field_missing'), source, bySource('kpulse_source_devices')],
  // worst returns the sources that are down, those without a device, and those whose values have not changed for longest.
  local worst = q.most('1e9 * (%s == 0) + 1e9 or 5e8 + (%s == 0) or %s or 0 * %s' % [bySource('kpulse_source_up'), bySource('kpulse_source_devices'), bySource('kpulse_source_unchanged_seconds'), bySource('kpulse_source_up')]),
  local ofWorst(query) = q.among(query, worst, source),
  local address = '%s, instance' % c.clusterLabel,
  local target = '%s, job, instance' % c.clusterLabel,
  // addresses counts proxies by address, since two jobs may scrape a proxy and its telemetry. counted is 0 where
  // nothing is counted, and absent where nothing is known.
  local addresses(query) = 'count(count by (%s) (%s))' % [address, query],
  local counted(query, known) = '%s or 0 * count(%s)' % [query, known],
  local up = 'up{%s} and on (%s, job, instance) last_over_time(%s[1d])' % [chosen, c.clusterLabel, raw('kpulse_build_info')],
  local chosen = '%s=~"$cluster", instance=~"$instance"' % c.clusterLabel,
  // silent is since when targets that are down have not answered or, for sources that are down, their proxies
  // have not read them. It is accurate to a minute in the last hour, and to ten in the last day: a day by the
  // minute takes two seconds for 200 hosts.
  local silent =
    |||
      time() - (
        max by (%(target)s) (max_over_time(timestamp(%(build)s)[1h:1m]) or max_over_time(timestamp(%(build)s)[1d:10m]))
        and on (%(target)s)
        up{%(chosen)s} == 0
        or
        %(read)s
        and on (%(source)s)
        %(up)s == 0
      )
    ||| % { target: target, build: raw('kpulse_build_info'), chosen: chosen, source: source, read: bySource('kpulse_source_last_read_timestamp_seconds'), up: bySource('kpulse_source_up') },
  // perHour is integer counts of the previous hour.
  local perHour(name, by=[]) = 'round(sum by (%s) (max by (%s) (increase(%s[1h]))))' % [std.join(', ', by), std.join(', ', [source] + by), raw(name)],

  grafanaDashboards+:: {
    'kpulse-proxy.json': d.new(
      c,
      'kpulse-proxy.json',
      'Proxy',
      'Can the other dashboards be trusted?',
      [v.datasource(c), v.cluster(c), v.instance(c)],
      [
        d.row('Now', [
          d.at(8, 3, p.stat('Proxies down', 'Addresses that Prometheus cannot scrape: their GPUs are not monitored.', 'none', [p.instant(counted(addresses(labels.down(c, chosen)), up))]) + colors.bad('red')),
          d.at(8, 3, p.stat('Proxies up', 'Addresses that answer, in any scrape job. If fewer than hosts with GPUs, some hosts have no proxy.', 'none', [p.instant(counted(addresses(raw('kpulse_build_info')), up))]) + colors.count),
          d.at(8, 3, p.stat('Sources down', 'Exporters, host engines or drivers that a proxy cannot read; its landing page (/) shows cause and remedy.', 'none', [p.instant(counted('count(%s == 0)' % bySource('kpulse_source_up'), raw('kpulse_source_up')))]) + colors.bad('red') + p.noValue('not known')),
          d.at(8, 3, p.stat('Devices read', 'GPUs and MIG instances in the last readings.', 'none', [p.instant('sum(%s)' % bySource('kpulse_source_devices'))]) + p.thresholds([[null, 'text'], [0, 'red'], [0.5, 'text']]) + p.noValue('not known')),
          d.at(8, 3, p.stat('Fields missing', 'Inputs of scores that a source does not provide. See the table below.', 'none', [p.instant(counted('count(%s)' % missing, raw('kpulse_source_up')))]) + colors.bad(colors.hot) + p.noValue('not known')),
          d.at(8, 3, p.stat('Proxy versions', 'Versions that run now. If more than one outside a roll-out, update the old ones.', 'none', [p.instant('count(count by (version) (%s))' % raw('kpulse_build_info'))]) + colors.count + p.noValue('not known')),
        ]),
        d.row('Who is down', [
          d.at(24, 6, p.table(
                        'Proxies and sources that are down',
                        'The longest first. A row without a source is a proxy that does not answer, or answers 502 because it cannot read any source: check its unit or pod, then its landing page (/).',
                        's',
                        [p.rows(q.most(silent))]
                      ) + p.sorted('Value') + p.renamed([[c.clusterLabel, 'Cluster'], ['instance', 'Proxy'], ['job', 'Scrape job'], ['source', 'Source'], ['Value', 'Silent for']])
                      + p.column('Silent for', { decimals: 0 }) + p.noValue('none is known to be down')),
        ]),
        d.row('Reading', [
          d.at(24, 10, p.table(
                         'Sources',
                         'How each source is read, the worst first. point: an instantaneous sample; window: an average. If values are unchanged for minutes, the exporter hangs. Unknown: families that the proxy does not know. Devices: GPUs and MIG instances read now; Had: the most within a day. A source that lists none has lost its driver.',
                         'none',
                         [
                           p.rows(ofWorst('max by (%s, backend, aggregation, version) (%s)' % [source, raw('kpulse_source_info')])),
                           p.rows(ofWorst(bySource('kpulse_source_up'))),
                           p.rows(ofWorst('time() - ' + bySource('kpulse_source_last_read_timestamp_seconds'))),
                           p.rows(ofWorst(bySource('kpulse_source_unchanged_seconds'))),
                           p.rows(ofWorst(bySource('kpulse_source_unknown_families'))),
                           p.rows(ofWorst(bySource('kpulse_source_devices'))),
                           p.rows(ofWorst('max by (%s) (max_over_time(%s[1d]))' % [source, raw('kpulse_source_devices')])),
                         ]
                       ) + p.joined + p.sorted('Value #F', false) + p.sorted('Value #B', false) + p.renamed([
                         [c.clusterLabel, 'Cluster'],
                         ['instance', 'Proxy'],
                         ['source', 'Source'],
                         ['backend', 'Backend'],
                         ['aggregation', 'Values are'],
                         ['version', 'Version'],
                         ['Value #B', 'Up'],
                         ['Value #F', 'Devices'],
                         ['Value #G', 'Had'],
                         ['Value #C', 'Age'],
                         ['Value #D', 'Unchanged'],
                         ['Value #E', 'Unknown'],
                       ]) + p.column('Devices', { color: { mode: 'thresholds' }, thresholds: p.steps([[null, 'red'], [0.5, 'text']]), 'custom.cellOptions': { type: 'color-text' } })
                       + p.column('Age', { unit: 's' }) + p.column('Unchanged', { unit: 's' })
                       + p.column('Up', { mappings: p.valueMappings({ '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } }), 'custom.cellOptions': { type: 'color-text' } }) + p.noValue('no source is read')),
          d.at(12, 8, p.timeseries(
            'Read duration',
            'The ten slowest. Above half the scrape interval, scrapes are close to failing: read fewer counters, or enable persistence mode.',
            's',
            [p.query('label_replace(%s, "source", "$1", "source", "(?:https?://)?([^/]+).*")' % q.highest(10, bySource('kpulse_source_read_duration_seconds'), source), labels.legend(c, '{{instance}} {{source}}'))]
          )),
          d.at(12, 8, p.table(
            'Fields missing by source',
            'Inputs of scores that a source does not provide. Add the counter to the exporter, or free the profiling counters.',
            'none',
            [p.rows(q.most(missing))]
          ) + p.renamed([[c.clusterLabel, 'Cluster'], ['instance', 'Proxy'], ['field', 'Field'], ['source', 'Source']]) + p.noValue('none is known to be missing')),
          d.at(24, 7, p.timeseries(
            'Lines and values left out per hour',
            'Malformed lines and impossible values in the preceding hour. If they keep coming, the exporter may be of an unknown version.',
            'suffix:/h',
            [
              p.query(perHour('kpulse_source_skipped_lines_total'), 'lines'),
              p.query(perHour('kpulse_source_dropped_values_total', ['reason']), 'values, {{reason}}'),
              p.query(perHour('kpulse_source_dropped_series_total'), 'series over the limit'),
            ]
          ) + p.decimals(0)),
          d.at(24, 7, p.timeseries(
            'Restarts and lost ticks of streams per hour',
            'Restarts, ticks that did not arrive in time, and ticks that the proxy did not read in time, in the preceding hour. Only if the proxy drives dcgmi or NVML itself; see the runbooks of KpulseSourceMissingTicks and KpulseSourceEvicting.',
            'suffix:/h',
            [
              p.query(perHour('kpulse_source_restarts_total', ['stream']), 'restarts, {{stream}}'),
              p.query(perHour('kpulse_source_ticks_missed_total', ['stream']), 'missed ticks, {{stream}}'),
              p.query(perHour('kpulse_source_ticks_evicted_total', ['stream']), 'lost ticks, {{stream}}'),
            ]
          ) + p.decimals(0) + p.noValue('no stream is read')),
        ]),
        d.row('Proxy resource usage', [
          d.at(6, 8, p.timeseries('CPU of the proxies', 'The ten busiest. Needs a scrape of /-/metrics, as mixin/README.md shows.', 'percentunit', [p.query(q.highest(10, 'max by (%s) (rate(%s[$__rate_interval]))' % [address, own('process_cpu_seconds_total')], address), labels.legend(c, '{{instance}}'))]) + p.unlisted),
          d.at(6, 8, p.timeseries('Memory of the proxies', 'The ten largest. Unbounded growth is a bug: take a profile with --web.enable-pprof and report it.', 'bytes', [p.query(q.highest(10, 'max by (%s) (%s)' % [address, own('process_resident_memory_bytes')], address), labels.legend(c, '{{instance}}'))]) + p.unlisted),
          d.at(6, 8, p.timeseries('Response time', '99 % of scrapes were answered faster.', 's', [p.query('histogram_quantile(0.99, sum by (le) (rate(%s[$__rate_interval])))' % own('kpulse_proxy_http_request_duration_seconds_bucket', ', path="/metrics"'), 'p99')])),
          d.at(6, 8, p.timeseries('Responses by status', 'Per second. 502 and 504: the source failed; 503: more concurrent scrapes than --web.max-requests allows.', 'reqps', [p.query('sum by (code) (rate(%s[$__rate_interval]))' % own('kpulse_proxy_http_requests_total'), '{{code}}')])),
        ]),
      ]
    ),
  },
}

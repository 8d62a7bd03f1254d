// Fleet: what are the GPUs doing, and which of them need attention?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local links = import '../lib/links.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local board = labels.board(c),
  local host = labels.host(c),
  local cluster = c.clusterLabel,
  local recorded = q.recorded(c),
  // Recorded series by host have the model of their boards.
  local modelled = q.recorded(c, ', model=~"$model"'),
  local models = q.cluster(c, ', model=~"$model"'),
  // others is boards of other models within a day. A missing board has no model any more, and a board whose
  // model was never known may be of any.
  local others = 'last_over_time(device:kpulse_gpu_share:ratio%s[1d])' % q.recorded(c, ', model!~"$model"'),
  local ofModel(query) = '(%s\nunless on (%s)\n%s)' % [query, board, others],
  local count(query) = 'count(%s) or vector(0)' % ofModel(query),
  local stateCount(state) = count('%s == 1' % q.board(c, 'kpulse_gpu_health', ', state="%s"' % state)),
  local utilization = q.utilization(board, recorded),

  // Unhealthy boards first, then the least used.
  local severity = ofModel(q.severity(c)),
  local worst = q.most('\n%s - on (%s) 0.4 * %s\nor on (%s)\n%s\n' % [severity, board, utilization, board, severity]),
  local ofWorst(query) = q.among(query, worst, board),

  // had is the number of boards of each host within a day.
  local had =
    '(host:kpulse_gpus_present:max1d%(recorded)s - on (%(host)s) (count by (%(host)s) (group by (%(board)s) (%(others)s)) or 0 * host:kpulse_gpus_present:max1d%(recorded)s) > 0)'
    % { recorded: recorded, host: host, board: board, others: others },
  // silent is those that have none now.
  local silent = '(%s\nunless on (%s) max by (%s) (kpulse_gpu_present%s))' % [had, host, host, q.raw(c)],
  // Hosts of the selected models, ordered by their worst board. A silent host ranks above the last state of its
  // boards.
  local hostState =
    |||
      (
        3.5 + 0 * %(silent)s
        or
        max by (%(host)s) (%(state)s)
      )
    ||| % { host: host, silent: silent, state: severity },
  local hostUtilization = q.ratio('sum by (%s) (host:kpulse_gpu_utilized_gpus:rate5m%s)' % [host, modelled], 'sum by (%s) (host:kpulse_gpu_known_gpus:rate5m%s)' % [host, modelled]),
  local realUtilization = q.ratio('sum(host:kpulse_gpu_utilized_gpus:rate5m%s)' % modelled, 'sum(host:kpulse_gpu_known_gpus:rate5m%s)' % modelled),
  local ofModels(by) = q.ratio('sum by (%s) (host:kpulse_gpu_utilized_gpus:rate5m%s)' % [by, models], 'sum by (%s) (host:kpulse_gpu_known_gpus:rate5m%s)' % [by, models]),
  local worstHosts = q.most('\n%s - on (%s) 0.4 * (%s)\nor on (%s)\n%s\n' % [hostState, host, hostUtilization, host, hostState]),
  local ofWorstHosts(query) = q.among(query, worstHosts, host),
  local hostStates = q.severities { '3.5': { text: 'SILENT', color: 'red' } },
  local asState(map) = { mappings: p.valueMappings(map), 'custom.cellOptions': { type: 'color-text' } },

  // told is a row of Getting started: what is missing, how often, and what to do. lacking finds clusters that
  // have GPUs but lack the series; each cluster is checked, since rules of one cluster do not help another.
  local told(what, todo, query) = 'label_replace(label_replace(%s, "missing", "%s", "", ""), "todo", "%s", "", "")' % [query, what, todo],
  local lacking(what, todo, wanted, here='kpulse_gpu_present' + q.raw(c)) = told(what, todo, 'count(count by (%s) (%s) unless on (%s) %s) > 0' % [cluster, here, cluster, wanted]),
  local ofClusters(more='') = '{%s%s=~"$cluster"%s}' % [c.kpulseMatchers, cluster, more],
  local holders = 'kpulse_allocation_info' + ofClusters(),
  // An unused host, or a cluster without load at night, lacks nothing.
  local held = '(%s\nor\nmax_over_time(host:kpulse_allocation_held_gpus:rate5m%s[1d]) > 0)' % [holders, q.cluster(c)],

  grafanaDashboards+:: {
    'kpulse-fleet.json': d.new(
      c,
      'kpulse-fleet.json',
      'Fleet',
      'What are the GPUs doing, and which of them need attention?',
      [v.datasource(c), v.cluster(c), v.model(c), v.hostname(c)],
      [
        d.row('Now', [
          d.at(8, 3, p.stat(
            'Here / expected',
            'Boards present, and boards that the hosts had in the last day or should have; all models. Red: a board is missing (see Missing boards) or a host is silent.',
            'none',
            incidents.hereOfExpected(c)
          ) + colors.count + p.colored('only here', 'red')),
          d.at(4, 3, p.stat('Gone', 'Boards that fell off the bus or that the driver lost; Missing boards lists them. A board of unknown model counts for every model.', 'none', [p.instant(count(q.gone(c)))]) + colors.bad('red')),
          d.at(4, 3, p.stat('Silent', 'Hosts that had GPUs within the last day and of which nothing is known now: look at their proxies.', 'none', [p.instant('count(%s) or vector(0)' % silent)]) + colors.bad('red')),
          d.at(4, 3, p.stat('Critical', 'Boards in state crit: drain them and follow the runbook of the alert.', 'none', [p.instant(stateCount('crit'))]) + colors.bad('red')),
          d.at(4, 3, p.stat('Warning', 'Boards in state warn: plan a reset or an inspection.', 'none', [p.instant(stateCount('warn'))]) + colors.bad('orange')),
          d.at(3, 3, p.stat('Hot', 'Boards above the warning temperature of their model, or throttled by heat: check fans and airflow.', 'none', [p.instant(stateCount('hot'))]) + colors.bad(colors.hot)),
          d.at(3, 3, p.stat(
            'Held',
            'GPUs that a pod or job holds. If far fewer than present: the queued work does not fit, or there is none.',
            'none',
            [p.instant('sum(host:kpulse_allocation_held_gpus:rate5m%s)' % modelled)]
          ) + colors.count + p.decimals(1) + p.links([links.to(c, 'kpulse-efficiency.json', 'Efficiency & waste: what is free')])),
          d.at(4, 3, p.stat(
            'Idle, held',
            'GPUs that are held but idle. Efficiency & waste shows who holds them.',
            'none',
            [p.instant('sum(host:kpulse_allocation_idle_gpus:rate5m%s) or vector(0)' % modelled)]
          ) + colors.bad(colors.hot) + p.decimals(1) + p.links([links.to(c, 'kpulse-efficiency.json', 'Efficiency & waste')])),
          d.at(5, 3, p.stat(
            'Real utilization',
            'Of all GPUs, over the last 5 minutes. If it is low while GPU-Util is high, kernels run but use little of the GPU; see Workload classes. ' + p.saturating,
            'percentunit',
            [p.instant(realUtilization)]
          ) + colors.good + p.range(0, 1)),
          d.at(4, 3, p.stat(
            'Power',
            'All boards together, from their energy counters. Compare it with the power budget of the racks.',
            'watt',
            [p.instant('sum(host:kpulse_gpu_energy:rate5m%s)' % modelled)]
          ) + colors.count),
          d.at(5, 3, p.stat(
            'Idle cost a day',
            'Cost of the GPUs that are held but idle now, over a whole day.',
            c.currency,
            [p.instant('24 * %g * (sum(host:kpulse_allocation_idle_gpus:rate5m%s) or vector(0))' % [c.gpuHourPrice, modelled])]
          ) + colors.bad(colors.hot) + p.decimals(2)),
        ]),
        d.row('What needs attention', [
          d.at(24, 8, incidents.alerts(c) + { description+: ' All models.' }),
          d.at(24, 6, incidents.missingBoards(c) + { description+: ' All models.' }),
        ]),
        d.row('Over time', [
          d.at(12, 9, p.stacked(
            'What the GPUs do',
            'GPUs by workload class. Grey is idle, teal is busy but uses the GPU poorly, orange waits for data.',
            'none',
            p.idleFirst(function(matcher) 'sum by (class) (host:kpulse_gpu_class_gpus:rate5m%s)' % q.recorded(c, ', model=~"$model", ' + matcher))
          ) + colors.byClass),
          d.at(12, 9, p.timeseries(
            'Real utilization beside GPU-Util',
            'GPU-Util only shows that some kernel ran; the gap between the lines is what it hides. GPU-Util is that of all models. If the gap is wide, profile the jobs.',
            'percentunit',
            [
              p.query(realUtilization, 'real utilization'),
              p.query('avg(device:kpulse_gpu_nvml_utilization:avg5m%s)' % recorded, 'GPU-Util'),
            ]
          ) + p.range(0, 1)),
        ]),
        d.row('Hosts and GPUs, worst first', [
          d.at(24, 10, p.table(
                         'Hosts',
                         'Ordered by their worst board, then by utilization. Silent: the proxy of the host reports no board. Click a host to compare its GPUs.',
                         'none',
                         [
                           p.rows(ofWorstHosts(hostState)),
                           p.rows(ofWorstHosts('sum by (%s) (%s)' % [host, ofModel(q.board(c, 'kpulse_gpu_present'))])),
                           p.rows(ofWorstHosts(had)),
                           p.rows(ofWorstHosts('count by (%s) (%s > 0.5)' % [host, severity])),
                           p.rows(ofWorstHosts('sum by (%s) (host:kpulse_allocation_held_gpus:rate5m%s)' % [host, modelled])),
                           p.rows(ofWorstHosts(hostUtilization)),
                           p.rows(ofWorstHosts('max by (%s) (%s)' % [host, ofModel(q.board(c, 'kpulse_gpu_temperature_celsius'))])),
                           p.rows(ofWorstHosts('sum by (%s) (host:kpulse_gpu_energy:rate5m%s)' % [host, modelled])),
                         ]
                       ) + p.joined + p.sorted('Value #F', false) + p.sorted('Value #A') + p.renamed([
                         [cluster, 'Cluster'],
                         ['hostname', 'Host'],
                         ['Value #A', 'Worst board'],
                         ['Value #D', 'Sick'],
                         ['Value #B', 'Here'],
                         ['Value #C', 'Of'],
                         ['Value #E', 'Held'],
                         ['Value #F', 'Real utilization'],
                         ['Value #G', 'Hottest'],
                         ['Value #H', 'Power'],
                       ]) + p.column('Worst board', asState(hostStates)) + p.column('Held', { decimals: 1 }) + p.column('Real utilization', colors.share)
                       + p.column('Hottest', { unit: 'celsius' }) + p.column('Power', { unit: 'watt' })),
          d.at(24, 12, p.table(
                         'GPUs',
                         'The boards that most need attention: unhealthy first, then idle. Click a UUID to open the GPU.',
                         'none',
                         [
                           p.rows(ofWorst(q.severity(c))),
                           p.rows(ofWorst(utilization)),
                           p.rows(ofWorst('max by (%s) (device:kpulse_gpu_nvml_utilization:avg5m%s) - %s' % [board, recorded, utilization])),
                           p.rows(ofWorst(q.board(c, 'kpulse_gpu_temperature_celsius'))),
                           p.rows(ofWorst(q.board(c, 'kpulse_gpu_power_watts'))),
                           p.rows(ofWorst(q.holders(c))),
                         ]
                       ) + p.joined + p.sorted('Value #B', false) + p.sorted('Value #A') + p.renamed(labels.columns(c) + [
                         ['Value #A', 'Health'],
                         ['Value #B', 'Real utilization'],
                         ['Value #C', 'Gap to GPU-Util'],
                         ['Value #D', 'Temperature'],
                         ['Value #E', 'Power'],
                         ['Value #F', 'Holders'],
                       ]) + p.column('Health', asState(q.severities))
                       + p.column('Real utilization', colors.share)
                       + p.column('Gap to GPU-Util', { unit: 'percentunit', decimals: 0 })
                       + p.column('Temperature', { unit: 'celsius' })
                       + p.column('Power', { unit: 'watt' })),
        ]),
        d.row('Models', [
          d.at(24, 7, p.table(
            'GPU models',
            'The same for each model, on all hosts. If one model is held but idle more than the others, it does not suit the jobs that request it.',
            'none',
            [
              p.rows('sum by (%s, model) (max by (%s) (kpulse_gpu_present%s) * on (%s) group_left (model) max by (%s, model) (device:kpulse_gpu_share:ratio%s) ^ 0)' % [cluster, board, ofClusters(), board, board, models]),
              p.rows('sum by (%s, model) (host:kpulse_allocation_held_gpus:rate5m%s)' % [cluster, models]),
              p.rows('sum by (%s, model) (host:kpulse_allocation_idle_gpus:rate5m%s)' % [cluster, models]),
              p.rows(ofModels('%s, model' % cluster)),
              p.rows('sum by (%s, model) (host:kpulse_gpu_energy:rate5m%s)' % [cluster, models]),
            ]
          ) + p.joined + p.sorted('Value #A') + p.renamed([
            [cluster, 'Cluster'],
            ['model', 'Model'],
            ['Value #A', 'Here'],
            ['Value #B', 'Held'],
            ['Value #C', 'Idle, held'],
            ['Value #D', 'Real utilization'],
            ['Value #E', 'Power'],
          ]) + p.column('Held', { decimals: 1 }) + p.column('Idle, held', { decimals: 1 }) + p.column('Real utilization', colors.share) + p.column('Power', { unit: 'watt' })),
          d.at(24, 7, p.timeseries(
            'Real utilization by model',
            'Of all GPUs of each model. If one model drops while the others do not, its jobs ended or are waiting.',
            'percentunit',
            [p.query(ofModels('model'), '{{model}}')]
          ) + p.range(0, 1)),
        ]),
        d.row('Getting started', [
          d.at(24, 6, p.table(
                        'What is not set up yet',
                        'What is missing for these dashboards, and how to add it. Empty when everything is set up. All models.',
                        'none',
                        [p.rows(std.join('\nor\n', [
                          lacking('Recording rules', 'Load prometheus_rules.yaml of the mixin: most panels need it. The number counts clusters.', 'host:kpulse_gpus_present:max1d'),
                          lacking('Who holds the GPUs', 'Pods: let the proxy ask the kubelet (--kube.pod-resources). Jobs: --hpc-job-mapping-dir, and a prolog that writes it. The number counts clusters.', held),
                          'label_replace(%s, "missing", "Input $1", "field", "(.+)")' % told(
                            '',
                            'Add it to the counters file: `kpulse-proxy check counters FILE` names the line. The number counts sources that lack it.',
                            'count by (field) (max by (%(of)s, field) (kpulse_source_field_missing%(fields)s) == 1 and on (%(of)s) max by (%(of)s) (kpulse_source_devices%(all)s) > 0)' % { of: cluster + ', instance, source', fields: ofClusters(', field!~"%s"' % std.join('|', c.optionalFields)), all: ofClusters() }
                          ),
                          told(
                            'A single proxy version',
                            'Several versions run: the dashboard Proxy shows which. Unless a roll-out is in progress, update the old ones.',
                            'count(count by (version) (kpulse_build_info%s)) > 1' % ofClusters()
                          ),
                        ]))]
                      ) + p.sorted('missing', false) + p.renamed([['missing', 'What is missing'], ['todo', 'What to do'], ['Value', 'Number']])
                      + p.column('What to do', { 'custom.minWidth': 400, 'custom.wrapText': true })
                      + { fieldConfig+: { defaults+: { noValue: 'everything is set up' } } }),
        ]),
      ]
    ),
  },
}

// Health & reliability: which boards are broken or about to be?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local labels = import '../lib/labels.libsonnet';
local links = import '../lib/links.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local board = [['hostname', 'Host'], ['gpu', 'GPU'], ['uuid', 'UUID']],
  local state(word, color, description) = d.at(4, 4, p.stat(
    'State ' + word, description, 'none', [p.instant('count(%s == 1) or vector(0)' % q.board(c, 'kpulse_gpu_health', ', state="%s"' % word))]
  ) + (if color == null then colors.count else colors.bad(color))),
  local actions = [['replace', 6], ['reboot_node', 5], ['restart_vm', 4], ['reset_gpu', 3], ['check_hardware', 2], ['restart_application', 1]],
  local increase(name, by='', more='') = 'max by (%s%s) (increase(%s%s[$__range]))' % [labels.board(c), by, name, q.raw(c, more)],

  grafanaDashboards+:: {
    'kpulse-health.json': d.new(
      c,
      'kpulse-health.json',
      'Health & reliability',
      'Which boards are broken, or about to be?',
      [v.datasource(c), v.cluster(c), v.hostname(c)],
      [
        d.row('Now', [
          state('crit', 'red', 'Drain these and follow the runbook.'),
          state('warn', 'yellow', 'A reset or a look at the slot is due.'),
          state('hot', 'orange', 'Too warm, or slowed down by heat: fans, airflow, neighbours.'),
          state('ok', null, 'Nothing is raised, and something was read that could tell.'),
          d.at(4, 4, p.stat(
            'Missing',
            'Boards that went within the hour, or that --expected-gpus lacks. Look for XID 79 in dmesg; reboot, then reseat.',
            'none',
            [p.instant('count(%s == 0) or vector(0)' % q.board(c, 'kpulse_gpu_present'))]
          ) + colors.bad('red')),
          d.at(4, 4, p.stat(
            'Good GPU-hours',
            'Share of the time range that boards spent in state ok, of the time for which their health was known.',
            'percentunit',
            [p.instant('(sum(sum_over_time(host:kpulse_gpu_health_gpus:rate5m%s[$__range])) or vector(0)) / sum(sum_over_time(host:kpulse_gpu_health_gpus:rate5m%s[$__range]))' % [q.recorded(c, ', state="ok"'), q.recorded(c, ', state!="unknown"')])]
          ) + colors.count + p.decimals(2)),
        ]),
        d.row('What is raised', [
          d.at(14, 10, p.table(
                         'Raised conditions',
                         'The worst first: crit ends work, warn wants a reset, hot wants air. A click on the UUID opens the GPU.',
                         'none',
                         [
                           p.rows('max by (%s, condition, state) (%s)' % [labels.board(c), q.ranked(
                             function(matcher) '(kpulse_gpu_health_condition%s == 1)' % q.raw(c, ', ' + matcher), 'state', [['crit', 3], ['warn', 2], ['hot', 1]]
                           )]),
                         ]
                       ) + p.sorted('Value') + p.renamed([['state', 'State'], ['condition', 'Condition']] + board)
                       + p.column('UUID', { links: [links.gpu(c)] })),
          d.at(10, 10, p.stacked(
            'Boards by state',
            'A step is an event on many boards at once: power, cooling, fabric or a driver roll-out.',
            'none',
            [p.query('sum by (state) (host:kpulse_gpu_health_gpus:rate5m%s)' % q.recorded(c), '{{state}}')]
          ) + colors.byState),
        ]),
        d.row('What has to be done', [
          d.at(12, 8, p.table(
            'Recommended actions',
            'What the raised conditions and the driver ask for, the most of it first. An alert by the name of the action has the runbook.',
            'none',
            [
              p.rows('max by (%s, action) (%s)' % [labels.board(c), q.ranked(
                function(matcher) '(kpulse_gpu_recommended_action%s == 1)' % q.raw(c, ', action!="none", ' + matcher), 'action', actions
              )]),
            ]
          ) + p.sorted('Value') + p.renamed([['action', 'Action']] + board) + p.column('UUID', { links: [links.gpu(c)] })),
          d.at(12, 8, p.timeseries(
            'Boards by recommended action',
            'A step is an event on many boards at once: a driver, a switch or a cooling loop.',
            'none',
            [p.query('sum by (action) (max by (%s, action) (kpulse_gpu_recommended_action%s)) > 0' % [labels.board(c), q.raw(c, ', action!="none"')], '{{action}}')]
          )),
        ]),
        d.row('XID errors', [
          d.at(12, 9, p.table(
                        'XIDs by board and code',
                        'How often each code came within the time range, and since the proxy was started. `kpulse-proxy explain xid CODE` says what one means.',
                        'none',
                        [
                          p.rows(increase('kpulse_gpu_xid_errors_total', ', xid') + ' > 0'),
                          p.rows('max by (%s, xid) (kpulse_gpu_xid_errors_total%s)' % [labels.board(c), q.raw(c)]),
                        ]
                      ) + p.joined + p.sorted('Value #B') + p.sorted('Value #A') + p.renamed([['xid', 'XID']] + board + [['Value #A', 'In range'], ['Value #B', 'In all']])
                      + p.decimals(0) + p.column('UUID', { links: [links.gpu(c)] })),
          d.at(12, 9, p.timeseries(
            'New XIDs by code',
            'Many hosts at once: an application or a driver, not a board. 45 follows whatever ends a process.',
            'none',
            [p.query('sum by (xid) (max by (%s, xid) (increase(kpulse_gpu_xid_errors_total%s[$__rate_interval])))' % [labels.board(c), q.raw(c)], '{{xid}}')]
          ) + { fieldConfig+: { defaults+: { custom+: { drawStyle: 'bars', fillOpacity: 80 } } } }),
        ]),
        d.row('Memory', [
          d.at(12, 9, p.table(
            'Memory errors and remapped rows',
            'Within the time range. Uncorrectable errors cost jobs; a remap that is pending takes a reset, one that failed a new board.',
            'none',
            [
              p.rows(increase('kpulse_gpu_ecc_errors_total', '', ', severity="uncorrectable", scope="volatile"')),
              p.rows(increase('kpulse_gpu_ecc_errors_total', '', ', severity="correctable", scope="volatile"')),
              p.rows(q.board(c, 'kpulse_gpu_remapped_rows_total', ', severity="uncorrectable"')),
              p.rows(q.board(c, 'kpulse_gpu_row_remap_pending')),
              p.rows(q.board(c, 'kpulse_gpu_row_remap_failure')),
            ]
          ) + p.joined + p.sorted('Value #A') + p.sorted('Value #E') + p.renamed(board + [
            ['Value #A', 'Uncorrectable'],
            ['Value #B', 'Correctable'],
            ['Value #C', 'Remapped, ever'],
            ['Value #D', 'Pending'],
            ['Value #E', 'Failed'],
          ]) + p.decimals(0) + p.column('UUID', { links: [links.gpu(c)] })),
          d.at(12, 9, p.timeseries(
            'Correctable errors by board',
            'A board that stands out gets worse. Plan a diagnosis run.',
            'cps',
            [p.query('topk(10, max by (%s) (rate(kpulse_gpu_ecc_errors_total%s[$__rate_interval])))' % [labels.board(c), q.raw(c, ', severity="correctable", scope="volatile"')], '{{hostname}} GPU {{gpu}}')]
          )),
        ]),
        d.row('Links', [
          d.at(8, 9, p.timeseries(
            'PCIe replays',
            'The ten worst. Steady replays: reseat the board, look at the riser.',
            'cps',
            [p.query('topk(10, max by (%s) (rate(kpulse_gpu_pcie_replays_total%s[$__rate_interval])))' % [labels.board(c), q.raw(c)], '{{hostname}} GPU {{gpu}}')]
          )),
          d.at(8, 9, p.timeseries(
            'NVLink errors',
            'The ten worst, by kind. Recovery errors cost time in every collective.',
            'cps',
            [p.query('topk(10, max by (%s, kind) (rate(kpulse_gpu_nvlink_errors_total%s[$__rate_interval])))' % [labels.board(c), q.raw(c)], '{{hostname}} GPU {{gpu}} {{kind}}')]
          )),
          d.at(8, 9, p.table(
            'PCIe width',
            'Lanes that each link runs on, the narrowest first. Fewer than the others of its host: reseat it. The generation falls when a GPU is idle, which is normal.',
            'none',
            [p.rows(q.board(c, 'kpulse_gpu_pcie_link_width')), p.rows(q.board(c, 'kpulse_gpu_pcie_link_generation'))]
          ) + p.joined + p.sorted('Value #A', false) + p.renamed([['hostname', 'Host'], ['gpu', 'GPU'], ['Value #A', 'Lanes'], ['Value #B', 'Generation']])),
        ]),
      ]
    ),
  },
}

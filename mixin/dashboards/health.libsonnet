// Health & reliability: which boards are broken or about to be?
local colors = import '../lib/colors.libsonnet';
local d = import '../lib/dashboard.libsonnet';
local incidents = import '../lib/incidents.libsonnet';
local labels = import '../lib/labels.libsonnet';
local p = import '../lib/panel.libsonnet';
local q = import '../lib/query.libsonnet';
local v = import '../lib/variable.libsonnet';

{
  local c = $._config,
  local board = labels.columns(c),
  local state(word, color, description) = d.at(4, 4, p.stat(
    'State ' + word, description, 'none', [p.instant('count(%s == 1) or vector(0)' % q.board(c, 'kpulse_gpu_health', ', state="%s"' % word))]
  ) + (if color == null then colors.count else colors.bad(color))),
  local actions = [['replace', 6], ['reboot_node', 5], ['restart_vm', 4], ['reset_gpu', 3], ['check_hardware', 2], ['restart_application', 1]],
  // errors returns the errors of each board within a range, as recorded every five minutes, in whole numbers and only
  // if there are any.
  local errors(name, range, more='') = 'sum by (%s) (max by (%s, severity, kind) (sum_over_time(device:kpulse_gpu_%s:increase5m%s[%s])))' % [labels.board(c), labels.board(c), name, q.recorded(c, more), range],
  // perHour is the errors of the previous hour, on the ten boards that had most within the time range.
  local perHour(name, more='') = '%s\nand on (%s)\ntopk(10, %s)' % [errors(name, '1h', more), labels.board(c), std.strReplace(errors(name, '$__range', more), '[$__range]', '[$__range] @ end()')],
  // ofRange is a number of errors as errors per hour of the time range.
  local ofRange(query) = '(%s) * 3600 / $__range_s' % query,
  // Boards whose links are not what they could be: PCIe by their own maximum, NVLinks by the other boards of the host.
  local lanes = q.board(c, 'kpulse_gpu_pcie_link_width'),
  local narrow = q.least('(%s\n< on (%s)\n%s)' % [lanes, labels.board(c), q.board(c, 'kpulse_gpu_pcie_link_width_max')]),
  local linksUp = q.board(c, 'kpulse_gpu_nvlink_links_active'),
  local linksOf = 'max by (%s) (%s)' % [labels.host(c), linksUp],
  local unlinked = q.least('(%s\n< on (%s) group_left ()\n%s)' % [linksUp, labels.host(c), linksOf]),
  local fabric(name) = q.board(c, 'kpulse_gpu_fabric_' + name),
  local unwoven = q.most('\n%s\n' % std.join('\nor on (%s)\n' % labels.board(c), [fabric('health') + ' >= 2', fabric('manager_status') + ' != 3 > 0', fabric('error') + ' > 0'])),
  local switch = '%s, pci_bus_id, sxid' % labels.host(c),
  // Boards with memory errors or remapped rows: those that need replacement or a reset first, then by count.
  local uncorrectable = errors('ecc_errors', '$__range', ', severity="uncorrectable"'),
  local correctable = errors('ecc_errors', '$__range', ', severity="correctable"'),
  local remapped = q.board(c, 'kpulse_gpu_remapped_rows_total', ', severity="uncorrectable"') + ' > 0',
  local pending = q.board(c, 'kpulse_gpu_row_remap_pending') + ' > 0',
  local failed = q.board(c, 'kpulse_gpu_row_remap_failure') + ' > 0',
  local forgetful = q.most('\n%s\n' % std.join('\nor on (%s)\n' % labels.board(c), ['1e18 * (%s)' % failed, '1e15 * (%s)' % pending, '1e9 * %s' % uncorrectable, '1e6 * (%s)' % remapped, correctable])),

  grafanaDashboards+:: {
    'kpulse-health.json': d.new(
      c,
      'kpulse-health.json',
      'Health & reliability',
      'Which boards are broken, or about to break?',
      [v.datasource(c), v.cluster(c), v.hostname(c)],
      [
        d.row('Now', [
          d.at(4, 4, p.stat(
            'Gone',
            'Boards that are gone, or missing from --expected-gpus. The table below lists them. Look for XID 79 in dmesg; reboot, then reseat.',
            'none',
            [p.instant('count(%s) or vector(0)' % q.gone(c))]
          ) + colors.bad('red')),
          state('crit', 'red', 'Drain these boards and follow the runbook.'),
          state('warn', 'orange', 'Plan a reset or an inspection.'),
          state('hot', colors.hot, 'Too hot, or throttled by heat: check fans, airflow and neighbours.'),
          state('ok', null, 'No condition is raised, and at least one could be read.'),
          d.at(4, 4, p.stat(
            'Good hours',
            'Share of time in state ok, relative to the time for which health was known.',
            'percentunit',
            [p.instant(q.ratio('(sum(sum_over_time(host:kpulse_gpu_health_gpus:rate5m%s[$__range])) or vector(0))' % q.recorded(c, ', state="ok"'), 'sum(sum_over_time(host:kpulse_gpu_health_gpus:rate5m%s[$__range]))' % q.recorded(c, ', state!="unknown"')))]
          ) + colors.count + p.decimals(2)),
        ]),
        d.row('Missing boards and raised conditions', [
          d.at(24, 6, incidents.missingBoards(c)),
          d.at(14, 10, p.table(
            'Raised conditions',
            'The worst first. gone: the board is missing; crit: drain it; warn: plan maintenance; hot: check cooling. Click a UUID to open the GPU.',
            'none',
            [
              p.rows(q.most('max by (%s, condition, state) (%s\nor\nlabel_replace(label_replace(4 + 0 * %s, "condition", "gone", "", ""), "state", "gone", "", ""))' % [labels.board(c), q.ranked(
                function(matcher) '(kpulse_gpu_health_condition%s == 1)' % q.raw(c, ', ' + matcher), 'state', [['crit', 3], ['warn', 2], ['hot', 1]]
              ), q.gone(c)])),
            ]
          ) + p.sorted('Value') + p.renamed([['state', 'State'], ['condition', 'Condition']] + board)),
          d.at(10, 10, p.stacked(
            'Boards by state',
            'Boards that are not ok, the worst at the bottom. A step means that many boards changed at once: power, cooling, fabric or a driver roll-out.',
            'none',
            [
              p.query('count(device:kpulse_gpu_gone:timestamp%s) or 0 * sum(host:kpulse_gpu_health_gpus:rate5m%s)' % [q.recorded(c), q.recorded(c)], 'gone'),
            ] + [
              p.query('sum by (state) (host:kpulse_gpu_health_gpus:rate5m%s)' % q.recorded(c, ', state="%s"' % state), '{{state}}')
              for state in ['crit', 'warn', 'hot', 'unknown']
            ]
          ) + colors.byState + p.colored('gone', 'dark-red')),
        ]),
        d.row('What to do', [
          d.at(12, 8, p.table(
                        'Recommended actions',
                        'What the raised conditions and the driver ask for, the most severe first. If a board is gone, reboot its node. The alert named after the action has the runbook.',
                        'none',
                        [
                          p.rows(q.most('max by (%s, action) (%s\nor\nlabel_replace(5 + 0 * %s, "action", "reboot_node", "", ""))' % [labels.board(c), q.ranked(
                            function(matcher) '(kpulse_gpu_recommended_action%s == 1)' % q.raw(c, ', action!="none", ' + matcher), 'action', actions
                          ), q.gone(c)])),
                          p.rows(q.board(c, 'kpulse_gpu_recovery_action') + ' > 0'),
                        ]
                      ) + p.joined + p.sorted('Value #A') + p.renamed([['action', 'Action']] + board + [['Value #B', 'Driver asks for']])
                      + p.column('Driver asks for', { 'custom.width': 160, mappings: p.valueMappings({
                        '1': { text: 'reset the GPU' },
                        '2': { text: 'reboot the node' },
                        '3': { text: 'drain peer-to-peer' },
                        '4': { text: 'drain and reset' },
                        '5': { text: 'recover the IMEX domain' },
                      }) })),
          d.at(12, 8, p.timeseries(
            'Boards by recommended action',
            'A step means that many boards changed at once: a driver, a switch or a cooling loop.',
            'none',
            [
              p.query('sum by (action) (max by (%s, action) (kpulse_gpu_recommended_action%s)) > 0' % [labels.board(c), q.raw(c, ', action!="none"')], '{{action}}'),
              p.query('count(device:kpulse_gpu_gone:timestamp%s)' % q.recorded(c), 'reboot_node, gone'),
            ]
          ) + colors.byAction),
        ]),
        d.row('XID errors', [
          d.at(24, 7, incidents.xidCodes(c)),
          d.at(12, 9, incidents.xidBoards(c)),
          d.at(12, 9, p.timeseries(
            'New XIDs by code',
            'XIDs between two points. On many hosts at once: an application or a driver, not a board. 45 follows whatever ends a process.',
            'none',
            [p.query('sum by (xid) (%s)' % incidents.came(c, '$__interval'), '{{xid}}')]
          ) + p.decimals(0) + { fieldConfig+: { defaults+: { custom+: { drawStyle: 'bars', fillOpacity: 80 } } } }),
        ]),
        d.row('Memory', [
          d.at(24, 7, p.table(
            'Memory errors and remapped rows',
            'Boards that have any; errors in the time range, and correctable ones per hour of it. Uncorrectable errors end jobs. A pending remap needs a reset, a failed remap a new board.',
            'none',
            [
              p.rows(q.among(query, forgetful, labels.board(c)))
              for query in [uncorrectable, correctable, remapped, pending, failed, ofRange(correctable)]
            ]
          ) + p.joined + p.sorted('Value #A') + p.sorted('Value #E') + p.renamed(board + [
            ['Value #A', 'Uncorrectable'],
            ['Value #B', 'Correctable'],
            ['Value #F', 'Correctable per hour'],
            ['Value #C', 'Remapped, ever'],
            ['Value #D', 'Pending'],
            ['Value #E', 'Failed'],
          ]) + p.decimals(0) + p.column('Correctable per hour', { unit: 'suffix:/h', decimals: 0 }) + p.noValue('no errors')),
          d.at(24, 7, p.timeseries(
            'Correctable errors per hour',
            'In the preceding hour, on the ten boards with the most in the time range. If one board stands out, plan a diagnostic run.',
            'suffix:/h',
            [p.query(perHour('ecc_errors', ', severity="correctable"'), labels.legend(c, '{{hostname}} GPU {{gpu}}'))]
          ) + p.decimals(0) + p.noValue('no errors')),
        ]),
        d.row('Links', [
          d.at(12, 9, p.timeseries(
            'PCIe replays per hour',
            'In the preceding hour, on the ten boards with the most in the time range. If replays keep coming, reseat the board and check the riser.',
            'suffix:/h',
            [p.query(perHour('pcie_replays'), labels.legend(c, '{{hostname}} GPU {{gpu}}'))]
          ) + p.decimals(0) + p.noValue('no errors')),
          d.at(12, 9, p.timeseries(
            'NVLink errors per hour',
            'In the preceding hour, all kinds together (recovery_event, which counts recoveries again, left out), on the ten boards with the most in the time range. Recovery errors slow every collective; the GPU dashboard shows the kinds.',
            'suffix:/h',
            [p.query(perHour('nvlink_errors', ', kind!="recovery_event"'), labels.legend(c, '{{hostname}} GPU {{gpu}}'))]
          ) + p.decimals(0) + p.noValue('no errors')),
          d.at(12, 8, p.table(
            'PCIe below its maximum',
            'Links with fewer lanes than board and slot allow: reseat the board and check the riser. A low generation on an idle GPU is normal.',
            'none',
            [p.rows(narrow)] + [
              p.rows(q.among(q.board(c, 'kpulse_gpu_pcie_link_' + of), narrow, labels.board(c)))
              for of in ['width_max', 'generation', 'generation_max']
            ]
          ) + p.joined + p.sorted('Value #A', false) + p.renamed(board + [['Value #A', 'Lanes'], ['Value #B', 'Of'], ['Value #C', 'Generation'], ['Value #D', 'At most']]) + p.noValue('no link that is read has fewer')),
          d.at(12, 8, p.table(
            'NVLinks down',
            'Boards with fewer links up than another board of their host. Reset the GPU; if the link stays down, check cable, tray and switch.',
            'none',
            [p.rows(unlinked), p.rows(q.among('0 * %s + on (%s) group_left () %s' % [linksUp, labels.host(c), linksOf], unlinked, labels.board(c)))]
          ) + p.joined + p.sorted('Value #A', false) + p.renamed(board + [['Value #A', 'Up'], ['Value #B', 'Of']]) + p.noValue('no board that is read has fewer')),
          d.at(12, 8, p.table(
                        'Fabric',
                        'Boards whose NVLink fabric is not healthy, or whose fabric manager has not set them up: jobs over several GPUs fail or crawl. See the log of nvidia-fabricmanager.',
                        'none',
                        [p.rows(q.among(fabric(name), unwoven, labels.board(c))) for name in ['health', 'manager_status', 'error']]
                      ) + p.joined + p.sorted('Value #A') + p.renamed(board + [['Value #A', 'Health'], ['Value #B', 'Manager'], ['Value #C', 'Error code']])
                      + p.column('Health', { mappings: p.valueMappings(colors.fabric), 'custom.cellOptions': { type: 'color-text' } })
                      + p.column('Manager', { mappings: p.valueMappings({ '0': { text: 'no fabric' }, '1': { text: 'not started' }, '2': { text: 'in progress' }, '3': { text: 'done' }, '4': { text: 'failed', color: 'red' } }), 'custom.cellOptions': { type: 'color-text' } })
                      + p.noValue('no fabric that is read has a fault')),
          d.at(12, 8, p.table(
            'SXIDs of NVSwitches',
            'Errors of switches in the time range, from the kernel log (--kernel-log). A fatal one stops every job of the host until it is rebooted.',
            'none',
            [
              p.rows(q.most('round(max by (%s, severity) (increase(kpulse_nvswitch_sxid_errors_total%s[$__range]))) > 0' % [switch, q.raw(c)])),
              p.rows('max by (%s) (kpulse_nvswitch_fatal_sxid%s == 1)' % [switch, q.raw(c)]),
            ]
          ) + p.joined + p.sorted('Value #A') + p.sorted('Value #B') + p.renamed([
            [c.clusterLabel, 'Cluster'],
            ['hostname', 'Host'],
            ['pci_bus_id', 'Switch'],
            ['sxid', 'SXID'],
            ['severity', 'Severity'],
            ['Value #A', 'Times'],
            ['Value #B', 'Unresolved'],
          ]) + p.column('Unresolved', { mappings: p.valueMappings({ '1': { text: 'yes', color: 'red' } }), 'custom.cellOptions': { type: 'color-text' } }) + p.noValue('no SXID came')),
        ]),
      ]
    ),
  },
}

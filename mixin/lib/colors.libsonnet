// Colors with one meaning on every dashboard: red means broken and nothing else, and the worse a state, the
// louder its color. Only where hosts, boards or holders are the lines of a chart, of which there may be any number,
// colors have no meaning but tell the lines apart. A class has the hue of its bottleneck, never green; idle is dim.
local panel = import 'panel.libsonnet';

{
  // Each class with its color and bottleneck.
  classes:: [
    ['idle', '#6e7077', 'idle'],
    ['tensor_heavy_compute', '#1f60c4', 'compute'],
    ['tensor_compute', '#5794f2', 'compute'],
    ['fp64_hpc_compute', '#5a5fd6', 'compute'],
    ['compute_heavy', '#8ab8ff', 'compute'],
    ['compute_active', '#c0d8ff', 'compute'],
    ['memory_bound', '#8f3bb8', 'memory'],
    ['memory_active', '#ca95e5', 'memory'],
    ['io_or_data_loading', '#ff9830', 'io'],
    ['busy_low_sm_use', '#0fa3a3', 'mixed'],
    ['low_utilization', '#b3e6e6', 'mixed'],
    ['mixed_or_moderate', '#66c7c7', 'mixed'],
    ['unknown', '#3d3f44', 'unknown'],
  ],
  // hot is yellow that can be read on white.
  hot:: '#b8860b',
  states:: [['ok', 'green'], ['hot', self.hot], ['warn', 'orange'], ['crit', 'red'], ['unknown', '#6e7077']],

  local all(list) = std.foldl(function(acc, pair) acc + panel.colored(pair[0], pair[1]), list, {}),
  byClass:: all(self.classes),
  byState:: all(self.states),

  // good is for ratios where more is better. It is never red: low is not a fault.
  good:: panel.thresholds([[null, '#6e7077'], [0.1, '#5794f2'], [0.4, '#3274d9'], [0.75, '#1f60c4']]),
  // share is the same for a column: a number, since a gauge without a reading looks like one at 0.
  share:: { unit: 'percentunit', decimals: 0, 'custom.cellOptions': { type: 'color-text' } } + self.good.fieldConfig.defaults,
  count:: panel.thresholds([[null, 'text']]),
  // raised maps the rank of the state that a condition raises (query.libsonnet's severities) to word and color:
  // loud if raised, invisible if not.
  raised:: {
    '0': { text: 'clear', color: 'transparent' },
    '1': { text: 'raised', color: $.hot },
    '2': { text: 'raised', color: 'orange' },
    '3': { text: 'raised', color: 'red' },
  },
  // fabric maps the health of an NVLink fabric.
  fabric:: {
    '0': { text: 'no fabric' },
    '1': { text: 'healthy', color: 'green' },
    '2': { text: 'unhealthy', color: 'red' },
    '3': { text: 'limited', color: 'orange' },
  },
  // gpus are the colors of the boards of a host, by index.
  gpus:: ['#5794f2', '#73bf69', '#b877d9', '#ff9830', '#0fa3a3', '#1f60c4', '#8f6f3a', '#c15cb5'],
  byGPU:: panel.lines([['GPU %d' % i, self.gpus[i]] for i in std.range(0, std.length(self.gpus) - 1)]),
  // Reasons for which clocks were held down, and actions.
  byReason:: panel.lines([
    ['power', 'blue'],
    ['thermal', 'orange'],
    ['sw_thermal', 'dark-orange'],
    ['hw_thermal', self.hot],
    ['hw_power_brake', 'purple'],
    ['sync_boost', '#0fa3a3'],
    ['board_limit', '#8f6f3a'],
    ['low_utilization', '#6e7077'],
    ['reliability', 'green'],
    ['application_clocks', 'light-blue'],
    ['base_clocks', 'dark-purple'],
  ]),
  byAction:: panel.lines([
    ['replace', 'red'],
    ['reboot_node, gone', 'dark-red'],
    ['reboot_node', 'dark-orange'],
    ['restart_vm', '#0fa3a3'],
    ['reset_gpu', self.hot],
    ['check_hardware', 'purple'],
    ['restart_application', 'blue'],
  ]),
  // bad is for counts that should be 0; what is not known is not green.
  bad(color):: panel.thresholds([[null, 'text'], [0, 'green'], [0.5, color]]),
}

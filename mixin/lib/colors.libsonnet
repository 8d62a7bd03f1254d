// Colors with one meaning on every dashboard: red means broken and nothing else, and the worse a state, the
// louder its color. A class has the hue of its bottleneck, never green; idle is dim.
local panel = import 'panel.libsonnet';

{
  // Each class with its color and bottleneck.
  classes:: [
    ['idle', '#6e7077', 'idle'],
    ['tensor_heavy_compute', '#1f60c4', 'compute'],
    ['tensor_compute', '#3274d9', 'compute'],
    ['fp64_hpc_compute', '#5794f2', 'compute'],
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
  good:: panel.thresholds([[null, '#6e7077'], [0.1, '#8ab8ff'], [0.4, '#5794f2'], [0.75, '#1f60c4']]),
  count:: panel.thresholds([[null, 'text']]),
  // raised maps the rank of the state that a condition raises (query.libsonnet's severities) to word and color:
  // loud if raised, invisible if not.
  raised:: {
    '0': { text: 'clear', color: 'transparent' },
    '1': { text: 'raised', color: 'yellow' },
    '2': { text: 'raised', color: 'orange' },
    '3': { text: 'raised', color: 'red' },
  },
  // bad is for counts that should be 0.
  bad(color):: panel.thresholds([[null, 'green'], [0.5, color]]),
}

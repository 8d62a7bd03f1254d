// The alerts for each health condition of the proxy (conditions.json): those for the action that it asks for, or
// alerts of its own, with the reason.
local own(alerts, why) = { byAction: false, alerts: alerts, why: why };

{ [name]: { byAction: true, alerts: [], why: '' } for name in std.objectFields(import 'conditions.json') } + {
  uncorrectable_remapped_rows+: { alerts: ['KpulseGPUUncorrectableECC'], why: 'As for ecc_double_bit.' },
  pcie_replay: own(['KpulseGPUPCIeReplayRate'], 'A burst raises it for ten minutes; the alert needs one replay a minute for half an hour.'),
  gpu_temperature: own(['KpulseGPUHot'], 'The board needs cooling, but protects itself: no immediate action is needed.'),
  memory_temperature: own(['KpulseGPUHot'], 'As for gpu_temperature.'),
  ecc_double_bit+: { alerts: ['KpulseGPUUncorrectableECC'], why: 'The programs that ran there have wrong data, whatever happens to the board.' },
  thermal_slowdown: own(['KpulseGPUThermalThrottling'], 'Short periods are harmless; the alert uses the share of time.'),
  power_brake: own(['KpulseGPUPowerBrake'], 'Short periods are harmless; the alert uses the share of time.'),
  nvlink_errors: own(['KpulseGPUNVLinkErrors'], 'A burst raises it for ten minutes; the alert needs more than ten errors in a quarter of an hour, for another one.'),
  nvswitch: own(['KpulseNVSwitchErrors'], 'One switch puts every board of its node into crit; one alert is enough.'),
  profiling_stalled: own(['KpulseGPUProfilingStalled'], 'The board works; its measurements are wrong.'),
}

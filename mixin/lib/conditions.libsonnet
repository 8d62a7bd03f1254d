// The alerts for each health condition: those for the action that it asks for, or an alert of its own, with the
// reason. A test compares this list with the conditions of the proxy.
{
  local byAction = { byAction: true, alerts: [], why: '' },
  local own(alerts, why) = { byAction: false, alerts: alerts, why: why },

  row_remap_failure: byAction,
  uncorrectable_remapped_rows: own(
    ['KpulseGPUUncorrectableECC'],
    'It is raised for the rest of the life of a board that once had such a row; the alert tells of the day on which another one comes.'
  ),
  pcie_replay: own(['KpulseGPUPCIeReplayRate'], 'One replay raises it for ten minutes; the alert wants one a minute for half an hour.'),
  gpu_temperature: own(['KpulseGPUHot'], 'The board needs cooling, and protects itself: nobody has to act at once.'),
  memory_temperature: own(['KpulseGPUHot'], 'As gpu_temperature.'),
  recovery_action: byAction,
  xid_fatal: byAction,
  xid_recent: byAction,
  xid_repeated: byAction,
  ecc_double_bit: byAction { alerts: ['KpulseGPUUncorrectableECC'], why: 'What ran there has wrong data, whatever is done about the board.' },
  row_remap_pending: byAction,
  retired_pages_pending: byAction,
  memory_worn: byAction,
  thermal_slowdown: own(['KpulseGPUThermalThrottling'], 'Moments of it are harmless; the alert looks at its share of the time.'),
  power_brake: own(['KpulseGPUPowerBrake'], 'Moments of it are harmless; the alert looks at its share of the time.'),
  nvlink_errors: own(['KpulseGPUNVLinkErrors'], 'One error raises it for ten minutes; the alert wants them to come for a quarter of an hour.'),
  nvlink_down: byAction,
  fabric: byAction,
  profiling_stalled: own(['KpulseGPUProfilingStalled'], 'The board works; what is measured of it is wrong.'),
}

// Every knob of the mixin. A user overrides them with
//   (import 'kpulse-mixin/mixin.libsonnet') { _config+:: { kpulseSelector: 'job="gpu"' } }
{
  _config+:: {
    // Matchers that every series of ours must have, recorded ones excepted, such as
    // 'job="gpu"'. Their names tell them apart, so that none are needed, whatever the job is
    // called.
    kpulseSelector: '',
    // The same as all that is in braces, and in front of further matchers.
    kpulseOnly:: if self.kpulseSelector == '' then '' else '{%s}' % self.kpulseSelector,
    kpulseMatchers:: if self.kpulseSelector == '' then '' else self.kpulseSelector + ', ',

    // Which scrapes are of the proxy's own telemetry, at /-/metrics; only the dashboard
    // about the proxy looks at it.
    telemetrySelector: 'job="kpulse-proxy-telemetry"',

    // The label that tells clusters apart. Where no such label exists, everything works, and
    // the variable of the dashboards has nothing to choose; without showMultiCluster it is hidden, and
    // legends name no cluster.
    clusterLabel: 'cluster',
    showMultiCluster: true,

    // Namespaces whose GPUs nobody should be written to about, as a regular expression;
    // that of health checks and burn-in tests, say.
    excludeNamespaces: '',

    // Severities by how soon somebody must act. A cluster that can lose a GPU until the
    // morning sets criticalSeverity to 'warning'.
    criticalSeverity: 'critical',
    warningSeverity: 'warning',
    infoSeverity: 'info',

    // Fields that nobody is told of where they lack: whole models of GPU cannot give them.
    // The memory of a T4, an L4 or a GeForce has no sensor.
    optionalFields: ['gpu_memory_temperature_celsius'],

    // Optional alerts, off because their right threshold depends on the cluster.
    alertStragglers: false,
    alertIdleMemoryHeld: false,
    alertHealthFlapping: false,

    // What an hour of one GPU costs; Efficiency & waste multiplies by it.
    gpuHourPrice: 2.5,
    currency: 'currencyUSD',

    // Where the runbooks are served; %s is the alert's name.
    runbookURLPattern: 'https://github.com/kpulse/kpulse-proxy/blob/main/mixin/runbooks/%s.md',

    // Thresholds of the alerts. Ratios are fractions in [0, 1], durations PromQL's.
    idleUtilizationThreshold: 0.05,  // below which a held GPU is idle; the cascade's own limit
    idleFor: '1h',
    namespaceWasteGPUHours: 24,  // held and idle, over a day, in one namespace
    thermalThrottleShareThreshold: 0.1,  // of the time
    powerBrakeShareThreshold: 0.01,
    pcieReplaysPerMinute: 1,
    correctableECCPerHour: 100,
    sourceSlowShare: 0.5,  // of the scrape interval
    sourceStaleSeconds: 300,  // since the last reading
    sourceUnchangedSeconds: 900,  // since any value changed; energy rises on an idle GPU too
    scrapeIntervalSeconds: 15,
    lostTicksShare: 0.05,  // of a stream's ticks, missed or dropped
    stragglerShare: 0.5,  // of the job's median; at most 0.5, what the rules call a straggler
    idleMemoryBytes: 8 * 1024 * 1024 * 1024,
    healthChangesPerHour: 6,

    // Where people open Grafana, as 'https://grafana.example.org': the annotation dashboard_url
    // of each alert begins with it.
    grafanaURL: '',

    grafanaKpulse: {
      dashboardNamePrefix: 'kpulse / ',
      dashboardTags: ['kpulse-mixin'],
      linkPrefix: '',
      refresh: '1m',  // what is recorded changes no oftener
      minimumTimeInterval: '1m',
      grafanaTimezone: 'UTC',
      period: 'now-3h',
    },
    datasourceName: 'default',
    datasourceFilterRegex: '',

    // Fixed, so that links and bookmarks survive an update.
    grafanaDashboardIDs: {
      'kpulse-fleet.json': 'kpulse-fleet',
      'kpulse-node.json': 'kpulse-node',
      'kpulse-gpu.json': 'kpulse-gpu',
      'kpulse-efficiency.json': 'kpulse-efficiency',
      'kpulse-namespace.json': 'kpulse-namespace',
      'kpulse-classes.json': 'kpulse-classes',
      'kpulse-health.json': 'kpulse-health',
      'kpulse-power.json': 'kpulse-power',
      'kpulse-proxy.json': 'kpulse-proxy',
    },
  },
}

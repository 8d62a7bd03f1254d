// All settings of the mixin. Override them with
//   (import 'kpulse-mixin/mixin.libsonnet') { _config+:: { kpulseSelector: 'job="gpu"' } }
{
  _config+:: {
    // Matchers for every series of the proxy, but not for recorded ones, such as 'job="gpu"'. They are
    // optional, since the names of the series are unique.
    kpulseSelector: '',
    // The same in braces, and as a prefix of further matchers.
    kpulseOnly:: if self.kpulseSelector == '' then '' else '{%s}' % self.kpulseSelector,
    kpulseMatchers:: if self.kpulseSelector == '' then '' else self.kpulseSelector + ', ',

    // Selects the proxy's own telemetry, /-/metrics; only the dashboard about the proxy uses it.
    telemetrySelector: 'job="kpulse-proxy-telemetry"',

    // The label that identifies clusters. If series lack it, everything works, and the cluster variable of the
    // dashboards is empty. Without showMultiCluster that variable is hidden, and legends name no cluster.
    clusterLabel: 'cluster',
    showMultiCluster: true,

    // Namespaces without alerts about unused GPUs, as a regular expression; for example those of health checks
    // and burn-in tests.
    excludeNamespaces: '',
    // The same for accounts and partitions of a batch system, where known (--hpc-job-info-dir).
    excludeAccounts: '',
    excludePartitions: '',

    // Severities, by how soon somebody must act. If a GPU can stay broken until the morning, set
    // criticalSeverity to 'warning'.
    criticalSeverity: 'critical',
    warningSeverity: 'warning',
    infoSeverity: 'info',

    // Missing fields that raise no alert, because whole models of GPU lack them. The memory of a T4, an L4 or a
    // GeForce has no temperature sensor.
    optionalFields: ['gpu_memory_temperature_celsius'],

    // Optional alerts, off because the right threshold depends on the cluster.
    alertStragglers: false,
    alertIdleMemoryHeld: false,
    alertHealthFlapping: false,
    alertPowerLimited: false,

    // Cost of one GPU-hour; Efficiency & waste multiplies by it.
    gpuHourPrice: 2.5,
    currency: 'currencyUSD',

    // URL of the runbooks; %s is the name of the alert.
    runbookURLPattern: 'https://github.com/kpulse/kpulse-proxy/blob/main/mixin/runbooks/%s.md',

    // Thresholds of the alerts. Ratios are fractions in [0, 1], durations are in PromQL's form.
    idleUtilizationThreshold: 0.05,  // a held GPU below it is idle; same limit as in the cascade
    idleFor: '1h',
    namespaceWasteGPUHours: 24,  // held and idle in one namespace, per day
    accountWasteGPUHours: 24,  // by one account
    thermalThrottleShareThreshold: 0.1,  // of the time
    powerBrakeShareThreshold: 0.1,
    pcieReplaysPerMinute: 1,
    correctableECCPerHour: 100,
    sourceSlowShare: 0.5,  // of the scrape interval
    sourceStaleSeconds: 300,  // since the last reading
    sourceUnchangedSeconds: 900,  // since any value changed; energy rises even on an idle GPU
    scrapeIntervalSeconds: 15,
    lostTicksShare: 0.05,  // of a stream's ticks that are missed or dropped
    stragglerShare: 0.5,  // of the job's median; at most 0.5, the limit of the rules
    idleMemoryBytes: 8 * 1024 * 1024 * 1024,
    healthChangesPerHour: 6,
    stalledCriticalGPUs: 8,  // KpulseJobStalled is critical for jobs of at least so many GPUs

    // Base URL of Grafana, such as 'https://grafana.example.org': the annotation dashboard_url of each alert
    // begins with it.
    grafanaURL: '',

    grafanaKpulse: {
      dashboardNamePrefix: 'kpulse / ',
      dashboardTags: ['kpulse-mixin'],
      linkPrefix: '',
      refresh: '1m',  // the interval of recorded series
      minimumTimeInterval: '1m',
      grafanaTimezone: 'UTC',
      period: 'now-3h',
    },
    datasourceName: 'default',
    datasourceFilterRegex: '',

    // Fixed, so that links and bookmarks survive updates.
    grafanaDashboardIDs: {
      'kpulse-fleet.json': 'kpulse-fleet',
      'kpulse-node.json': 'kpulse-node',
      'kpulse-gpu.json': 'kpulse-gpu',
      'kpulse-efficiency.json': 'kpulse-efficiency',
      'kpulse-namespace.json': 'kpulse-namespace',
      'kpulse-job.json': 'kpulse-job',
      'kpulse-classes.json': 'kpulse-classes',
      'kpulse-health.json': 'kpulse-health',
      'kpulse-power.json': 'kpulse-power',
      'kpulse-proxy.json': 'kpulse-proxy',
    },
  },
}

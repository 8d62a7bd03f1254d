// Gives each alert the URL of its runbook.
{
  prometheusAlerts+:: {
    groups: [
      group { rules: [
        rule { annotations+: { runbook_url: $._config.runbookURLPattern % rule.alert } }
        for rule in group.rules
      ] }
      for group in super.groups
    ],
  },
}

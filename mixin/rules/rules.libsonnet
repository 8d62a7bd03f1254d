// The recording rules are written once, in the folder rules of the repository; from them
// `make generate` makes prometheus_rules.yaml, which here only takes the mixin's key, and
// the label that tells clusters apart. dcgm-exporter.rules.yml is left out: it is for
// clusters without the proxy.
{
  local label = $._config.clusterLabel,
  local renamed(text) = std.foldl(
    function(text, end) std.strReplace(text, '(cluster' + end, '(' + label + end),
    [',', ')'],
    text
  ),

  prometheusRules+:: {
    groups+: std.parseYaml(renamed(importstr '../prometheus_rules.yaml')).groups,
  },
}

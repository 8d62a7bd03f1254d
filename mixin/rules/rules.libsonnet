// The recording rules are written once, in ../../rules; here they only take the mixin's
// key, and the label that tells clusters apart. dcgm-exporter.rules.yml is left out: it is
// for clusters without the proxy.
{
  local label = $._config.clusterLabel,
  local renamed(text) = std.foldl(
    function(text, end) std.strReplace(text, '(cluster' + end, '(' + label + end),
    [',', ')'],
    text
  ),

  prometheusRules+:: {
    groups+: std.flatMap(
      function(file) std.parseYaml(renamed(file)).groups,
      [
        importstr '../../rules/kpulse-node.rules.yml',
        importstr '../../rules/kpulse-fleet.rules.yml',
      ],
    ),
  },
}

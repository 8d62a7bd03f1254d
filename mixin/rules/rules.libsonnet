// The recording rules are written once, in ../../rules; here they only take the mixin's
// key. dcgm-exporter.rules.yml is left out: it is for clusters without the proxy.
{
  prometheusRules+:: {
    groups+: std.flatMap(
      function(file) std.parseYaml(file).groups,
      [
        importstr '../../rules/kpulse-node.rules.yml',
        importstr '../../rules/kpulse-fleet.rules.yml',
      ],
    ),
  },
}

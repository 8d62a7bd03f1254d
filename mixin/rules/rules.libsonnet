// The recording rules come from ../../rules; rules.json has them in a form that every
// jsonnet reads. Here they get the mixin's key and its cluster label.
{
  local label = $._config.clusterLabel,
  local renamed(text) = std.foldl(
    function(text, end) std.strReplace(text, '(cluster' + end, '(' + label + end),
    [',', ')'],
    text
  ),

  prometheusRules+:: {
    groups+: std.parseJson(renamed(importstr 'rules.json')).groups,
  },
}

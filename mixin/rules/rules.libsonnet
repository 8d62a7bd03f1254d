// The recording rules are written in ../../rules; rules.json has them in words that every
// jsonnet reads. Here they take the mixin's key, and the label that tells clusters apart.
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

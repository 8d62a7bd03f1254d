{{/* Values that each are right and together cannot be. */}}
{{- define "kpulse.refuse" -}}
{{- with .Values -}}
{{- if and .exporter.url (or .exporter.namespace .exporter.selector .exporter.allNamespaces) -}}
{{- fail "exporter.url is read in the place of what exporter.namespace, allNamespaces and selector find; set one or the other" -}}
{{- end -}}
{{- if and .exporter.namespace .exporter.allNamespaces -}}
{{- fail "exporter.namespace names one namespace and exporter.allNamespaces means all; set one of them" -}}
{{- end -}}
{{- if and .existingConfigMap (or .config .configFiles) -}}
{{- fail "existingConfigMap is read in the place of config and configFiles; set one or the other" -}}
{{- end -}}
{{- if and (or .web.tls .web.auth) (not .web.secret) -}}
{{- fail "web.tls and web.auth say what the web-config.yml of a Secret does; name that Secret in web.secret" -}}
{{- end -}}
{{- if and .kube.workloadLabels (not .kube.workloads) -}}
{{- fail "kube.workloadLabels has no meaning without kube.workloads; set kube.workloads=true" -}}
{{- end -}}
{{- if and .kube.dra (not (include "kpulse.podResources" $)) -}}
{{- fail "kube.dra looks up the devices of claims that the kubelet names; set kube.podResources=true too" -}}
{{- end -}}
{{- if and .hostNetwork (ne (toString (dig "rollingUpdate" "maxSurge" 0 .updateStrategy)) "0") -}}
{{- fail "with hostNetwork, two pods cannot hold one port of a node during an update; set updateStrategy.rollingUpdate to {maxSurge: 0, maxUnavailable: 10%}" -}}
{{- end -}}
{{- if and (eq .mode "sidecar") (eq .monitor.kind "ServiceMonitor") -}}
{{- fail "the exporter's own ServiceMonitor scrapes a sidecar; monitor.kind=PodMonitor adds the proxy's telemetry to it" -}}
{{- end -}}
{{- if and (eq .mode "sidecar") .networkPolicy.enabled -}}
{{- fail "a sidecar is in the exporter's pods, and so under their NetworkPolicy; set networkPolicy.enabled=false" -}}
{{- end -}}
{{- if and (eq .monitor.kind "ServiceMonitor") (not .service.enabled) -}}
{{- fail "a ServiceMonitor finds pods by a Service; set service.enabled=true, or monitor.kind=PodMonitor" -}}
{{- end -}}
{{- end -}}
{{- end }}

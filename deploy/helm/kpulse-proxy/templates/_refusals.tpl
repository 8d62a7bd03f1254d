{{/* Values that only some modes use, and these modes. */}}
{{- define "kpulse.usedIn" -}}
exporter: [exporter]
sidecar: [sidecar]
dcgm: [dcgm]
nvml: [nvml]
{{- /* Another chart makes the pods of a sidecar, and scrapes them. */}}
{{- range list "affinity" "extraContainers" "gpuNodesOnly" "hostNetwork" "monitor.honorLabels" "monitor.metricRelabelings" "networkPolicy" "nodeSelector" "podAnnotations" "podLabels" "podSecurityContext" "port" "priorityClassName" "service" "serviceAccount" "terminationGracePeriodSeconds" "tolerations" "updateStrategy" }}
{{ . }}: [exporter, dcgm, nvml]
{{- end }}
{{- end }}

{{/* Values that were set but that the mode does not use. */}}
{{- define "kpulse.unused" -}}
{{- $unused := list -}}
{{- $defaults := fromYaml (.Files.Get "files/values.yaml") -}}
{{- range $path, $modes := fromYaml (include "kpulse.usedIn" .) -}}
{{- $value := $.Values -}}
{{- $default := $defaults -}}
{{- range splitList "." $path -}}
{{- $value = index $value . -}}
{{- $default = index $default . -}}
{{- end -}}
{{- if not (has $.Values.mode $modes) -}}
{{- $users := printf "of mode %s" (join ", " $modes) -}}
{{- if and $default (kindIs "map" $default) -}}
{{- range $key, $was := $default -}}
{{- if ne (toJson (index $value $key)) (toJson $was) -}}
{{- $unused = append $unused (printf "%s.%s (%s)" $path $key $users) -}}
{{- end -}}
{{- end -}}
{{- else if ne (toJson $value) (toJson $default) -}}
{{- $unused = append $unused (printf "%s (%s)" $path $users) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join ", " $unused -}}
{{- end }}

{{/* Values that are valid alone but not together. */}}
{{- define "kpulse.refuse" -}}
{{- with .Values -}}
{{- if and (eq .mode "sidecar") (eq .monitor.kind "ServiceMonitor") -}}
{{- fail "the exporter's own ServiceMonitor scrapes a sidecar; monitor.kind=PodMonitor adds the proxy's telemetry to it" -}}
{{- end -}}
{{- if and (eq .mode "sidecar") (eq .monitor.kind "PodMonitor") (not .monitor.telemetry) -}}
{{- fail "the PodMonitor of a sidecar scrapes only the proxy's telemetry; set monitor.telemetry=true, or monitor.kind=none" -}}
{{- end -}}
{{- if and (eq .mode "sidecar") .networkPolicy.enabled -}}
{{- fail "a sidecar is in the exporter's pods, and so under their NetworkPolicy; set networkPolicy.enabled=false" -}}
{{- end -}}
{{- with include "kpulse.unused" $ -}}
{{- fail (printf "mode=%s does not use %s; leave that out, or set a mode that does" $.Values.mode .) -}}
{{- end -}}
{{- if and .exporter.url (or .exporter.namespace .exporter.selector .exporter.allNamespaces) -}}
{{- fail "exporter.url takes the place of what exporter.namespace, allNamespaces and selector find; set one or the other" -}}
{{- end -}}
{{- if and .exporter.namespace .exporter.allNamespaces -}}
{{- fail "exporter.namespace names one namespace and exporter.allNamespaces means all; set one of them" -}}
{{- end -}}
{{- if and .existingConfigMap (or .config .configFiles) -}}
{{- fail "existingConfigMap takes the place of config and configFiles; set one or the other" -}}
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
{{- if and .hostNetwork .networkPolicy.enabled -}}
{{- fail "no NetworkPolicy applies to pods with hostNetwork; set networkPolicy.enabled=false, and close the port by the firewall of the node" -}}
{{- end -}}
{{- if and .hostNetwork (ne (toString (dig "rollingUpdate" "maxSurge" 0 .updateStrategy)) "0") -}}
{{- fail "with hostNetwork, two pods cannot hold one port of a node during an update; set updateStrategy.rollingUpdate to {maxSurge: 0, maxUnavailable: 10%}" -}}
{{- end -}}
{{- if eq (dig "type" "RollingUpdate" .updateStrategy) "RollingUpdate" -}}
{{- $surge := toString (dig "rollingUpdate" "maxSurge" 0 .updateStrategy) -}}
{{- $unavailable := toString (dig "rollingUpdate" "maxUnavailable" 1 .updateStrategy) -}}
{{- if eq (has $surge (list "0" "0%")) (has $unavailable (list "0" "0%")) -}}
{{- fail (printf "updateStrategy.rollingUpdate has maxSurge %s and maxUnavailable %s, and Kubernetes wants one of them to be 0 and the other not; to stop the old pod first, set {maxSurge: 0, maxUnavailable: 10%%}" $surge $unavailable) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .monitor.kind "ServiceMonitor") (not .service.enabled) -}}
{{- fail "a ServiceMonitor finds pods by a Service; set service.enabled=true, or monitor.kind=PodMonitor" -}}
{{- end -}}
{{- end -}}
{{- end }}

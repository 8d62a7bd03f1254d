{{/* Each of these is "true" or empty. */}}
{{- define "kpulse.discovers" -}}
{{- if and (eq .Values.mode "exporter") (not .Values.exporter.url) }}true{{ end }}
{{- end }}

{{- define "kpulse.podResources" -}}
{{- if eq (toString .Values.kube.podResources) "auto" -}}
{{- if has .Values.mode (list "dcgm" "nvml") }}true{{ end -}}
{{- else if eq (toString .Values.kube.podResources) "true" }}true{{ end -}}
{{- end }}

{{/* A directory of the node belongs to root, and few namespaces allow one. */}}
{{- define "kpulse.stateDirectory" -}}
{{- if ne .Values.stateDirectory "auto" }}{{ .Values.stateDirectory -}}
{{- else if or (include "kpulse.podResources" .) .Values.kernelLog }}/var/lib/kpulse-proxy{{ end -}}
{{- end }}

{{/* Whether the program queries the API server, and so needs the account's token. */}}
{{- define "kpulse.asksAPIServer" -}}
{{- if or (include "kpulse.discovers" .) .Values.kube.workloads .Values.kube.dra }}true{{ end }}
{{- end }}

{{- define "kpulse.hasConfig" -}}
{{- if or .Values.config .Values.configFiles .Values.existingConfigMap }}true{{ end }}
{{- end }}

{{- define "kpulse.toolsImage" -}}
{{- if eq .Values.mode "dcgm" }}{{ .Values.dcgm.toolsImage }}{{ end }}
{{- end }}

{{- define "kpulse.exporterNamespace" -}}
{{ default .Release.Namespace .Values.exporter.namespace }}
{{- end }}

{{/* The port of exporter.url, which may contain $(HOST_IP); without a URL, dcgm-exporter's. */}}
{{- define "kpulse.exporterPort" -}}
{{- with .Values.exporter.url -}}
{{ default (ternary "443" "80" (hasPrefix "https:" .)) (regexReplaceAll "^https?://[^/?]*?(?::([0-9]+))?(?:[/?].*)?$" . "${1}") }}
{{- else -}}
9400
{{- end -}}
{{- end }}

{{- define "kpulse.port" -}}
{{ ternary .Values.sidecar.port .Values.port (eq .Values.mode "sidecar") }}
{{- end }}

{{- define "kpulse.args" -}}
{{- if include "kpulse.discovers" . }}
- {{ printf "--kube.discover%s" (.Values.exporter.selector | printf "=%s" | trimSuffix "=") | quote }}
{{- if not .Values.exporter.allNamespaces }}
- {{ printf "--kube.discover-namespace=%s" (include "kpulse.exporterNamespace" .) | quote }}
{{- end }}
{{- else if eq .Values.mode "exporter" }}
- {{ printf "--source=%s" .Values.exporter.url | quote }}
{{- else if eq .Values.mode "sidecar" }}
- "--source=http://127.0.0.1:{{ .Values.sidecar.exporterPort }}/metrics"
{{- else }}
- "--backend={{ .Values.mode }}"
{{- end }}
{{- if eq .Values.mode "dcgm" }}
- {{ printf "--dcgm.host=%s" .Values.dcgm.host | quote }}
- {{ printf "--dcgm.fields=%s" .Values.dcgm.fields | quote }}
{{- end }}
- "--web.listen-address=:{{ include "kpulse.port" . }}"
{{- if .Values.web.secret }}
- "--web.config.file=/etc/kpulse-proxy/web/web-config.yml"
{{- end }}
{{- if or .Values.config .Values.existingConfigMap }}
- "--config.file=/etc/kpulse-proxy/config/config.yml"
{{- end }}
{{- if .Values.kube.workloads }}
- "--kube.workloads"
{{- end }}
{{- range .Values.kube.workloadLabels }}
- {{ printf "--kube.workload-label=%s" . | quote }}
{{- end }}
{{- if include "kpulse.podResources" . }}
- {{ printf "--kube.pod-resources=%s/kubelet.sock" .Values.kube.podResourcesPath | quote }}
{{- end }}
{{- if .Values.kernelLog }}
- "--kernel-log"
{{- end }}
{{- if include "kpulse.stateDirectory" . }}
- "--state.file=/var/lib/kpulse-proxy/state.json"
{{- end }}
{{- range .Values.extraArgs }}
- {{ quote . }}
{{- end }}
{{- end }}

{{- define "kpulse.env" -}}
- {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
{{- if contains "$(HOST_IP)" (print .Values.exporter.url .Values.dcgm.host) }}
- {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
{{- end }}
{{- if include "kpulse.toolsImage" . }}
- {name: PATH, value: /opt/dcgm}
- {name: LD_LIBRARY_PATH, value: /opt/dcgm/lib}
{{- end }}
{{- if and (eq .Values.mode "nvml") .Values.nvml.runtimeClassName }}
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

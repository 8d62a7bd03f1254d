{{- define "kpulse.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kpulse.fullname" -}}
{{- $name := include "kpulse.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "kpulse.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kpulse.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kpulse.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "kpulse.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The labels of the program's pods; for a sidecar, of the exporter's pods. */}}
{{- define "kpulse.podSelector" -}}
{{- if eq .Values.mode "sidecar" }}{{ toYaml .Values.sidecar.selector }}{{ else }}{{ include "kpulse.selectorLabels" . }}{{ end }}
{{- end }}

{{/* The program's service account; for a sidecar, the exporter's. */}}
{{- define "kpulse.serviceAccountName" -}}
{{- if eq .Values.mode "sidecar" -}}
{{ .Values.sidecar.serviceAccountName }}
{{- else if .Values.serviceAccount.create -}}
{{ default (include "kpulse.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* The image. The variant with cgo, whose tag ends in -nvml, reads the driver's library. */}}
{{- define "kpulse.image" -}}
{{- with .Values.image -}}
{{- if not (or .tag .digest (ne $.Chart.AppVersion "unreleased")) -}}
{{- fail "this chart is that of a checkout, for which nobody published an image; build one with make image, push it to your registry, and set image.repository and image.tag" -}}
{{- end -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default (printf "%s%s" $.Chart.AppVersion (ternary "-nvml" "" (eq $.Values.mode "nvml"))) .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A text of the mixin, with its job kpulse-proxy replaced by monitor.job. */}}
{{- define "kpulse.forJob" -}}
{{- $job := .root.Values.monitor.job -}}
{{ .text | replace `job="kpulse-proxy` (printf `job="%s` $job) | replace `job=\"kpulse-proxy` (printf `job=\"%s` $job) }}
{{- end }}

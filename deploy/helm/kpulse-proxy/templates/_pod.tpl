{{/* The least privileges for our containers. The kubelet's socket and directories of the node
     belong to root, and only privileged containers can open the kernel's log. */}}
{{- define "kpulse.securityContext" -}}
{{- $root := or (include "kpulse.podResources" .) .Values.kernelLog (include "kpulse.stateDirectory" .) -}}
{{- $user := ternary 0 65534 (not (not $root)) -}}
{{- $base := dict "runAsUser" $user "runAsGroup" $user "runAsNonRoot" (not $root) "readOnlyRootFilesystem" true -}}
{{- if .Values.kernelLog -}}
{{- $base = mustMerge (dict "privileged" true) $base -}}
{{- else -}}
{{- $base = mustMerge (dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) "seccompProfile" (dict "type" "RuntimeDefault")) $base -}}
{{- end -}}
{{ toYaml (mustMergeOverwrite $base .Values.securityContext) }}
{{- end }}

{{/* A container that reads nothing of the node. */}}
{{- define "kpulse.unprivileged" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
runAsGroup: 65534
runAsNonRoot: true
runAsUser: 65534
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* A probe: by HTTP, or of the TCP port if the paths ask for a password. */}}
{{- define "kpulse.probe" -}}
{{- if .root.Values.web.auth -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: {{ .path }}, port: metrics, scheme: {{ ternary "HTTPS" "HTTP" .root.Values.web.tls }}}
{{- end -}}
{{- end }}

{{- define "kpulse.container" -}}
name: kpulse-proxy
image: {{ include "kpulse.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
{{- include "kpulse.args" . }}
env:
{{ include "kpulse.env" . }}
ports:
- {name: metrics, containerPort: {{ include "kpulse.port" . }}}
startupProbe:
  {{- include "kpulse.probe" (dict "root" . "path" "/-/healthy") | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  {{- include "kpulse.probe" (dict "root" . "path" "/-/healthy") | nindent 2 }}
  timeoutSeconds: 5
readinessProbe:
  {{- include "kpulse.probe" (dict "root" . "path" "/-/ready") | nindent 2 }}
  timeoutSeconds: 5
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "kpulse.securityContext" . | nindent 2 }}
{{- with include "kpulse.volumeMounts" . | trim }}
volumeMounts:
{{ . }}
{{- end }}
{{- end }}

{{- define "kpulse.volumeMounts" -}}
{{- if include "kpulse.hasConfig" . }}
- {name: config, mountPath: /etc/kpulse-proxy/config, readOnly: true}
{{- end }}
{{- if .Values.web.secret }}
- {name: web, mountPath: /etc/kpulse-proxy/web, readOnly: true}
{{- end }}
{{- if include "kpulse.podResources" . }}
- {name: pod-resources, mountPath: {{ .Values.kube.podResourcesPath }}, readOnly: true}
{{- end }}
{{- if .Values.kernelLog }}
- {name: kmsg, mountPath: /dev/kmsg, readOnly: true}
{{- end }}
{{- if include "kpulse.stateDirectory" . }}
- {name: state, mountPath: /var/lib/kpulse-proxy}
{{- end }}
{{- if include "kpulse.toolsImage" . }}
- {name: dcgm, mountPath: /opt/dcgm, readOnly: true}
# dcgmi needs its loader at a fixed path, which a scratch image lacks.
- {name: dcgm, mountPath: /lib64, subPath: loader, readOnly: true}
- {name: dcgm, mountPath: /lib, subPath: loader, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kpulse.volumes" -}}
{{- if include "kpulse.hasConfig" . }}
- {name: config, configMap: {name: {{ default (include "kpulse.fullname" .) .Values.existingConfigMap }}}}
{{- end }}
{{- if .Values.web.secret }}
- {name: web, secret: {secretName: {{ .Values.web.secret }}, defaultMode: 0444}}
{{- end }}
{{- if include "kpulse.podResources" . }}
# The directory, not the socket: a kubelet that restarts makes a new socket.
- {name: pod-resources, hostPath: {path: {{ .Values.kube.podResourcesPath }}, type: Directory}}
{{- end }}
{{- if .Values.kernelLog }}
- {name: kmsg, hostPath: {path: /dev/kmsg, type: CharDevice}}
{{- end }}
{{- with include "kpulse.stateDirectory" . }}
- {name: state, hostPath: {path: {{ quote . }}, type: DirectoryOrCreate}}
{{- end }}
{{- if include "kpulse.toolsImage" . }}
- {name: dcgm, emptyDir: {sizeLimit: 256Mi}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Copies dcgmi, its libraries and its loader from NVIDIA's image for ours, which has none. */}}
{{- define "kpulse.tools" -}}
name: dcgmi
image: {{ .Values.dcgm.toolsImage | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [sh, -euc]
args:
- |
  cd "${TOOLS:-/opt/dcgm}"
  mkdir -p lib loader
  dcgmi=$(command -v dcgmi)
  cp -L "$dcgmi" dcgmi
  ldd "$dcgmi" | while read -r name arrow path _; do
    case "$name $arrow" in
    "/"*" =>") cp -L "$path" "loader/${name##*/}" ;;
    "/"*) cp -L "$name" loader/ ;;
    *" =>") cp -L "$path" lib/ ;;
    esac
  done
  ls loader/*
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "kpulse.unprivileged" . | nindent 2 }}
volumeMounts:
- {name: dcgm, mountPath: /opt/dcgm}
{{- end }}

{{- define "kpulse.affinity" -}}
{{- if .Values.affinity -}}
{{ toYaml .Values.affinity }}
{{- else if .Values.gpuNodesOnly -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms: # any of these
    - matchExpressions: [{key: nvidia.com/gpu.present, operator: In, values: ["true"]}]
    - matchExpressions: [{key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}]
    - matchExpressions: [{key: feature.node.kubernetes.io/pci-0302_10de.present, operator: In, values: ["true"]}]
    - matchExpressions: [{key: cloud.google.com/gke-accelerator, operator: Exists}]
{{- end -}}
{{- end }}

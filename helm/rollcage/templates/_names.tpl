{{/* The name of everything in the release's namespace. */}}
{{- define "rollcage.name" -}}
{{- if contains "rollcage" .Release.Name }}{{ .Release.Name | trunc 40 }}{{ else }}{{ printf "%s-rollcage" .Release.Name | trunc 40 }}{{ end }}
{{- end }}

{{/* The name of what belongs to no namespace, or to somebody else's. */}}
{{- define "rollcage.clusterName" -}}
{{- $name := include "rollcage.name" . }}
{{- if eq $name .Release.Namespace }}{{ $name }}{{ else }}{{ printf "%s-%s" .Release.Namespace $name | trunc 50 }}{{ end }}
{{- end }}

{{- define "rollcage.labels" -}}
app.kubernetes.io/name: rollcage
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: rollcage
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* What selects the pods of one part: (list . "gateway"). */}}
{{- define "rollcage.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: rollcage
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Secrets that may be somebody else's. */}}
{{- define "rollcage.keyringSecret" -}}{{ .Values.signing.existingSecret | default (printf "%s-keyring" (include "rollcage.name" .)) }}{{- end }}
{{- define "rollcage.tenantsSecret" -}}{{ .Values.tenants.existingSecret | default (printf "%s-tenants" (include "rollcage.name" .)) }}{{- end }}
{{- define "rollcage.redisSecret" -}}{{ .Values.redis.existingSecret | default (printf "%s-redis" (include "rollcage.name" .)) }}{{- end }}

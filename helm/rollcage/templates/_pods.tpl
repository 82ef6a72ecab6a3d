{{/* What the pods of all parts have in common: no root, no privileges, no links to services (whose variables would
     be taken for settings: ROLLCAGE_PORT). */}}
{{- define "rollcage.pod" -}}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "rollcage.container" -}}
imagePullPolicy: {{ .Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Where a part runs: (list . .Values.gateway "gateway"). */}}
{{- define "rollcage.placement" -}}
{{- $ := index . 0 }}{{- $part := index . 1 }}
{{- if $.Values.priorityClasses.create }}
priorityClassName: {{ include "rollcage.clusterName" $ }}-service
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "rollcage.selector" (list $ (index . 2)) | nindent 8 }}
{{- end }}

{{/* The settings of gateway and controller alike. */}}
{{- define "rollcage.settings" -}}
{{- if .Values.redis.enabled }}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ include "rollcage.redisSecret" . }}, key: password}
- name: ROLLCAGE_REDIS_URL
  value: redis://:$(REDIS_PASSWORD)@{{ include "rollcage.name" . }}-redis:6379/0
{{- else }}
- name: ROLLCAGE_REDIS_URL
  valueFrom:
    secretKeyRef: {name: {{ required "redis.external.secret names the Secret with the server's address" .Values.redis.external.secret }}, key: {{ .Values.redis.external.key }}}
{{- end }}
- name: ROLLCAGE_STORE_NAMESPACE
  value: {{ .Values.redis.prefix | quote }}
- name: ROLLCAGE_RETENTION_DAYS
  value: {{ .Values.retentionDays | quote }}
- name: ROLLCAGE_KEYRING
  value: /etc/rollcage/keyring/keyring.json
{{- end }}

{{/* More variables of one part: .Values.gateway.env. */}}
{{- define "rollcage.variables" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Keys are read at the start, so another choice of keys is another pod. What they are stays out of it. */}}
{{- define "rollcage.rollOn" -}}
rollcage.dev/signing: {{ .Values.signing | toJson | sha256sum | trunc 16 | quote }}
{{- end }}

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

{{/* The nodes that a part may run on: .Values.gateway. */}}
{{- define "rollcage.nodes" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where a part runs: (list . .Values.gateway "gateway"). */}}
{{- define "rollcage.placement" -}}
{{- $ := index . 0 }}
{{- if $.Values.priorityClasses.create }}
priorityClassName: {{ include "rollcage.clusterName" $ }}-service
{{- end }}
{{- include "rollcage.nodes" (index . 1) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "rollcage.selector" (list $ (index . 2)) | nindent 8 }}
    {{- if ne (index . 2) "redis" }}
    # Of one version: those that an upgrade replaces must not decide where the new ones go.
    matchLabelKeys: [pod-template-hash]
    {{- end }}
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
{{- if .Values.redis.external.ca.secret }}
- name: ROLLCAGE_REDIS_CA
  value: /etc/rollcage/redis/{{ .Values.redis.external.ca.key }}
{{- end }}
{{- end }}
- name: ROLLCAGE_STORE_NAMESPACE
  value: {{ .Values.redis.prefix | quote }}
- name: ROLLCAGE_RETENTION_DAYS
  value: {{ .Values.retentionDays | quote }}
- name: ROLLCAGE_KEYRING
  value: /etc/rollcage/keyring/keyring.json
{{- end }}

{{/* What gateway and controller read at their start, and where it comes from. */}}
{{- define "rollcage.mounts" -}}
- {name: keyring, mountPath: /etc/rollcage/keyring, readOnly: true}
{{- if and (not .Values.redis.enabled) .Values.redis.external.ca.secret }}
- {name: redis-ca, mountPath: /etc/rollcage/redis, readOnly: true}
{{- end }}
{{- end }}
{{- define "rollcage.volumes" -}}
- name: keyring
  secret: {secretName: {{ include "rollcage.keyringSecret" . }}, defaultMode: 0440}
{{- if and (not .Values.redis.enabled) .Values.redis.external.ca.secret }}
- name: redis-ca
  secret: {secretName: {{ .Values.redis.external.ca.secret }}, defaultMode: 0440}
{{- end }}
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
{{- if not .Values.signing.existingSecret }}
rollcage.dev/signs: {{ .Values.signing.signs | quote }}
{{- end }}
{{- end }}

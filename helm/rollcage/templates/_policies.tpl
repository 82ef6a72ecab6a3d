{{/* The pieces that policies of the release's namespace are made of. */}}
{{- define "rollcage.names" }}
    # Names.
    - to: {{- toYaml .Values.networkPolicy.dns | nindent 8 }}
      ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
{{- end }}
{{- define "rollcage.toRedis" }}
    {{- if .Values.redis.enabled }}
    - to:
        - podSelector:
            matchLabels: {{- include "rollcage.selector" (list . "redis") | nindent 14 }}
      ports:
        - {protocol: TCP, port: 6379}
    {{- else }}
    # Redis; any address, unless its peers were told.
    - ports:
        - {protocol: TCP, port: {{ .Values.redis.external.port }}}
      {{- with .Values.redis.external.peers }}
      to: {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
{{- end }}
{{- define "rollcage.toSandboxes" }}
    - to:
        - namespaceSelector:
            matchLabels: {kubernetes.io/metadata.name: {{ .Values.sandboxes.namespace }}}
      ports:
        - {protocol: TCP, port: 8750}
{{- end }}
{{- define "rollcage.toApiServer" }}
    # The API server, which no selector can name.
    - ports:
        {{- range .Values.networkPolicy.apiServer.ports }}
        - {protocol: TCP, port: {{ . }}}
        {{- end }}
      {{- with .Values.networkPolicy.apiServer.peers }}
      to: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- define "rollcage.notSandboxes" -}}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [{{ .Values.sandboxes.namespace }}]}
{{- end }}

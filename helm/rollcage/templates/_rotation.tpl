{{/*
Refuse a step of a key's replacement that comes too early: (list . RING), the keyring that is there.

Sandboxes trust the keys of the day they were made. Those that do not trust the key that signs refuse every call, and
their rollouts are masked. A renderer that sees no cluster has no keyring either, and says nothing.
*/}}
{{- define "rollcage.rotation" }}
{{- $ := index . 0 }}{{- $ring := index . 1 }}
{{- $signing := $.Values.signing }}
{{- if ne $signing.signs $ring.signs }}
{{- if not (hasKey $ring.keys $signing.signs) }}
{{- fail (printf "signing.signs: no sandbox trusts %s yet. First upgrade with it in signing.keys while %s signs" $signing.signs $ring.signs) }}
{{- end }}
{{- if not (has $ring.signs $signing.keys) }}
{{- fail (printf "signing.keys: gateways still sign with %s. First let %s sign, then take %s away with another upgrade" $ring.signs $signing.signs $ring.signs) }}
{{- end }}
{{- $strangers := list }}
{{- $pods := (lookup "v1" "Pod" $.Values.sandboxes.namespace "").items | default list }}
{{- range $pod := $pods }}
{{- if and (eq (dig "metadata" "labels" "app.kubernetes.io/managed-by" "" $pod) "rollcage") (not (dig "metadata" "deletionTimestamp" "" $pod)) (has $pod.status.phase (list "Pending" "Running")) }}
{{- range $variable := (first $pod.spec.containers).env }}
{{- if and (eq $variable.name "ROLLCAGE_KEYS") (not (hasKey ($variable.value | fromJson) $signing.signs)) }}
{{- $strangers = append $strangers $pod.metadata.name }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if $strangers }}
{{- fail (printf "signing.signs: %d sandboxes were made before %s and do not trust it: %s. Wait until their rollouts have ended; deleting a pod masks its rollout" (len $strangers) $signing.signs (join ", " (slice $strangers 0 (min 5 (len $strangers) | int)))) }}
{{- end }}
{{- end }}
{{- range $pod := (lookup "v1" "Pod" $.Release.Namespace "").items | default list }}
{{- $signs := dig "metadata" "annotations" "rollcage.dev/signs" "" $pod }}
{{- if and $signs (eq (dig "metadata" "labels" "app.kubernetes.io/instance" "" $pod) $.Release.Name) (not (has $signs $signing.keys)) }}
{{- fail (printf "signing.keys: %s still signs with %s. A gateway that is replaced finishes its calls first; wait until it is gone" $pod.metadata.name $signs) }}
{{- end }}
{{- end }}
{{- end }}

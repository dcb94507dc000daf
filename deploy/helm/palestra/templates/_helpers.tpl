{{- define "palestra.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "palestra.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* (list $ "api"): labels by which selectors find the pods of a component. */}}
{{- define "palestra.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "palestra.image" -}}
{{- if .Values.image.digest -}}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{- else -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{- end -}}
{{- end }}

{{- define "palestra.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "palestra.fullname" .) }}
{{- end }}

{{/* Of the workers: the same, unless they run environments as pods and so have rights. */}}
{{- define "palestra.workerAccountName" -}}
{{- if and .Values.hosting.kubernetes.enabled (not .Values.serviceAccount.name) -}}
{{ include "palestra.fullname" . }}-worker
{{- else -}}
{{ include "palestra.serviceAccountName" . }}
{{- end -}}
{{- end }}

{{/* "true" if replicas run sandboxes as pods. */}}
{{- define "palestra.hasSandboxes" -}}
{{- if and .Values.hosting.kubernetes.enabled .Values.hosting.kubernetes.sandboxes -}}true{{- end -}}
{{- end }}

{{- define "palestra.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "palestra.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* A variable from the Secret: (list $ "NAME" "key"). */}}
{{- define "palestra.secretVariable" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef: { name: {{ $root.Values.existingSecret }}, key: {{ index . 2 }} }
{{- end }}

{{/* Variables that the service and its workers share. */}}
{{- define "palestra.variables" -}}
{{ include "palestra.secretVariable" (list . "DATABASE_URL" "database-url") }}
{{ include "palestra.secretVariable" (list . "PALESTRA_SECRET_KEY" "secret-key") }}
{{ include "palestra.secretVariable" (list . "S3_ACCESS_KEY_ID" "s3-access-key-id") }}
{{ include "palestra.secretVariable" (list . "S3_SECRET_ACCESS_KEY" "s3-secret-access-key") }}
{{- with .Values.s3.endpoint }}
- { name: S3_ENDPOINT, value: {{ . | quote }} }
{{- end }}
- { name: S3_BUCKET, value: {{ .Values.s3.bucket | quote }} }
- { name: S3_REGION, value: {{ .Values.s3.region | quote }} }
- { name: PALESTRA_PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
{{- with .Values.hosting.kubernetes }}
{{- if .enabled }}
- { name: PALESTRA_HOSTING, value: kubernetes }
- { name: PALESTRA_KUBERNETES_NAMESPACE, value: {{ .namespace | default $.Release.Namespace | quote }} }
- { name: PALESTRA_KUBERNETES_CALLER_PODS, value: {{ printf "app.kubernetes.io/name=%s,app.kubernetes.io/instance=%s" $.Chart.Name $.Release.Name | quote }} }
- { name: PALESTRA_KUBERNETES_CALLER_NAMESPACE, value: {{ $.Release.Namespace | quote }} }
- { name: PALESTRA_KUBERNETES_NETWORK_POLICY, value: {{ ternary "1" "0" .networkPolicyEnforced | quote }} }
{{- end }}
{{- end }}
{{- range $name, $value := .Values.variables }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{/* Values that cannot work are an error of `helm install`, with what to do. */}}
{{- define "palestra.validate" -}}
{{- if not .Values.existingSecret }}{{ fail "existingSecret: create the Secret that values.yaml describes, and name it here" }}{{ end -}}
{{- if not .Values.s3.bucket }}{{ fail "s3.bucket: name the bucket" }}{{ end -}}
{{- if not .Values.publicUrl }}{{ fail "publicUrl: set the address at which users reach the service, as in https://palestra.example" }}{{ end -}}
{{- $replicas := ternary .Values.api.autoscaling.maxReplicas .Values.api.replicas .Values.api.autoscaling.enabled | int -}}
{{- /* DATABASE_POOL_SIZE of docs/operations.md; one more pod of each during a rolling update. */ -}}
{{- $most := add (mul (add $replicas 1) (add (int .Values.api.poolSize) 14)) (mul (add (int .Values.worker.replicas) 1) (add (int .Values.worker.poolSize) 28)) -}}
{{- if gt (int $most) (int .Values.postgresql.connections) }}
{{- fail (printf "postgresql.connections: %d replicas and %d workers may open %d connections, but PostgreSQL grants %d. Raise max_connections and this value, or lower poolSize or the replicas" $replicas (int .Values.worker.replicas) (int $most) (int .Values.postgresql.connections)) }}
{{- end -}}
{{- end }}

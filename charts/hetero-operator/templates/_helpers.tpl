{{- define "hetero-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "hetero-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "hetero-operator.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hetero-operator.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hetero-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "hetero-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hetero-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "hetero-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: hetero
app.kubernetes.io/component: operator
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "hetero-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "hetero-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "hetero-operator.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}
{{- .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* The image of a job's pods: what was given, or the one of that name that belongs to this chart. */}}
{{- define "hetero-operator.jobImage" -}}
{{- if .given }}{{ .given }}{{ else }}
{{- with .root.Values.image.registry }}{{ . }}/{{ end }}{{ .name }}:{{ .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "hetero-operator.testNamespace" -}}
{{- default (first (append .Values.watchNamespaces .Release.Namespace)) .Values.test.namespace }}
{{- end }}

{{- define "hetero-operator.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* A rule of a NetworkPolicy. Its address is that of the Service for some network plug-ins, of the server for others. */}}
{{- define "hetero-operator.apiServerEgress" -}}
- ports:
  {{- range default (list 443 6443) .Values.networkPolicy.egress.apiServerPorts }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
  {{- with .Values.networkPolicy.egress.apiServer }}
  to: {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What the operator may do with jobs and their objects, in every namespace it serves. */}}
{{- define "hetero-operator.jobRules" -}}
- apiGroups: [training.hetero.dev]
  resources: [heterotrainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [training.hetero.dev]
  resources: [heterotrainingjobs/status]
  verbs: [get, update, patch]
# For ownerReferences with blockOwnerDeletion.
- apiGroups: [training.hetero.dev]
  resources: [heterotrainingjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, deletecollection, get, list, watch]
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [create, delete, get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, delete, get, list, watch]
# Never read: the operator makes a job's certificates and forgets them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if (.Values.kueue).enabled }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [get, patch]
{{- end }}
{{- range (.Values.scheduling).gangs }}
{{- if eq . "Volcano" }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
{{- else if eq . "Coscheduling" }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
{{- else }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups, workloads]
{{- end }}
  verbs: [create, delete, get, list, watch]
{{- end }}
{{- end }}

{{/*
The account, and the bindings of the roles that the chart has beside it. Who asks for `watched` sees stamped objects by
the ClusterRole carto-watched, which the chart `carto` makes.
*/}}
{{- define "controller-library.account" -}}
{{- $name := include "controller-library.name" . -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
  {{- with .Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# The Pod asks for a token of its own, which is short-lived.
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: carto-{{ $name }}
  labels:
    {{- include "controller-library.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: carto-{{ $name }}
subjects:
  {{- include "controller-library.subjects" . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  {{- include "controller-library.subjects" . | nindent 2 }}
{{- end -}}

{{- define "controller-library.watched" -}}
{{- range list "carto-watched" "carto-watched-kinds" }}
---
# Which of the kinds that templates stamp are watched is said once for all controllers.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ . }}-{{ $.Chart.Name }}
  labels:
    {{- include "controller-library.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ . }}
subjects:
  {{- include "controller-library.subjects" $ | nindent 2 }}
{{- end }}
{{- end -}}

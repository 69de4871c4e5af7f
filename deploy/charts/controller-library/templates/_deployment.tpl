{{/*
A Deployment. What differs between controllers is in templates that each chart has: CHART.args, CHART.mounts and
CHART.volumes, CHART.webhook, which is empty where none is served, and CHART.works, which says how replicas share the work.
*/}}
{{- define "controller-library.deployment" -}}
{{- $webhook := include (printf "%s.webhook" .Chart.Name) . -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "controller-library.metadata" . | nindent 2 }}
  {{- $replicas := include "controller-library.replicas" . }}
  {{- if ne $replicas "0" }}
  annotations:
    # How many there are when somebody has stopped all of them: `carto migrate` starts as many.
    carto.run/wanted-replicas: {{ $replicas | quote }}
  {{- end }}
spec:
  {{- if .Part }}
  # All of them answer the API server.
  {{- else }}
  {{- include (printf "%s.works" .Chart.Name) . | nindent 2 }}
  {{- if $webhook }}, and
  # all of them answer the API server
  {{- end }}.
  {{- end }}
  replicas: {{ $replicas }}
  selector:
    matchLabels:
      {{- include "controller-library.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  template:
    metadata:
      labels:
        {{- include "controller-library.podLabels" . | nindent 8 }}
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "controller-library.pod" . | nindent 6 }}
{{- end -}}

{{- define "controller-library.replicas" -}}
{{- $shard := .Shard | default dict -}}
{{- hasKey $shard "replicas" | ternary $shard.replicas .Values.replicas | int -}}
{{- end -}}

{{/* What CHART.works says where one replica leads. */}}
{{- define "controller-library.leads" -}}
# One replica works at a time (a Lease sees to that). The others know all that it knows, so they take over at once
{{- end -}}

{{- define "controller-library.pod" -}}
serviceAccountName: {{ include "controller-library.name" . }}
# A token of its own is mounted below.
automountServiceAccountToken: false
enableServiceLinks: false
# More than the 28 s that the process may take to end: 20 s for work under way, 8 s for the rest. A webhook is served for
# the first 5 s of them, until all nodes know that this Pod is going: that needs no preStop.
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.priorityClassName | default .Values.global.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with concat .Values.imagePullSecrets .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- if .Values.runAsUser }}
  runAsUser: {{ .Values.runAsUser | int64 }}
  runAsGroup: {{ .Values.runAsUser | int64 }}
  fsGroup: {{ .Values.runAsUser | int64 }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "controller-library.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - {{ include "controller-library.container" . | nindent 4 | trim }}
volumes:
  # It ends when it says so, and the kubelet renews it before. The one that is mounted by default is good for a year: the API
  # server prolongs it.
  - name: token
    projected:
      sources:
        - serviceAccountToken:
            path: token
            expirationSeconds: {{ .Values.tokenExpirationSeconds | int64 }}
        - configMap:
            name: kube-root-ca.crt
            items:
              - {key: ca.crt, path: ca.crt}
        - downwardAPI:
            items:
              - path: namespace
                fieldRef:
                  fieldPath: metadata.namespace
  {{- with include (printf "%s.volumes" .Chart.Name) . }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

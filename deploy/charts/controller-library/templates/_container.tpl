{{- define "controller-library.container" -}}
name: {{ .Chart.Name }}
image: {{ include "controller-library.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
  - --metrics-port=9998
  - --health-port=8081
  {{- if not .Part }}
  - --leader-elect
  {{- end }}
  {{- with include (printf "%s.args" .Chart.Name) . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  - name: CARTO_LOG_LEVEL
    value: {{ .Values.logLevel | quote }}
  {{- with .Values.otlpEndpoint }}
  - name: CARTO_OTLP_ENDPOINT
    value: {{ . | quote }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  {{- if include (printf "%s.webhook" .Chart.Name) . }}
  - name: webhook
    containerPort: 9443
  {{- end }}
  - name: metrics
    containerPort: 9998
  - name: health
    containerPort: 8081
livenessProbe:
  httpGet:
    path: /healthz
    port: health
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 5
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: token
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    readOnly: true
  {{- with include (printf "%s.mounts" .Chart.Name) . }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

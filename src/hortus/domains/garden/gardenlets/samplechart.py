"""A small chart of gardenlet, for `hortus up` and for tests.

It has the values and objects of Gardener's chart that the operator depends on (gardener, charts/gardener/gardenlet).
"""

from __future__ import annotations

from typing import Final

_DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: gardenlet
  namespace: {{ .Release.Namespace }}
  labels: {app: gardener, role: gardenlet}
spec:
  replicas: {{ .Values.replicaCount }}
  revisionHistoryLimit: {{ .Values.revisionHistoryLimit }}
  selector:
    matchLabels: {app: gardener, role: gardenlet}
  template:
    metadata:
      annotations:
        checksum/configmap-gardenlet-config: {{ toYaml .Values.config | sha256sum | trunc 8 | quote }}
        {{- with .Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if .Values.broken }}
        simulation.hortus.dev/workload: broken
        {{- end }}
      labels:
        app: gardener
        role: gardenlet
        {{- with .Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .Values.serviceAccountName }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: gardenlet
          {{- if .Values.image.ref }}
          image: {{ .Values.image.ref }}
          {{- else }}
          image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
          {{- end }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args: [--config=/etc/gardenlet/config/config.yaml]
          {{- with .Values.env }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .Values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- if .Values.enableHealthProbes }}
          readinessProbe:
            httpGet: {path: /readyz, port: 2728}
          {{- end }}
          volumeMounts:
            - {name: gardenlet-config, mountPath: /etc/gardenlet/config}
            {{- with .Values.additionalVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: gardenlet-config
          configMap: {name: gardenlet-configmap}
        {{- with .Values.additionalVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
"""
_CONFIG: Final = """\
{{- $config := deepCopy .Values.config }}
{{- with $config.gardenClientConnection.bootstrapKubeconfig }}
{{- $_ := unset . "kubeconfig" }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: gardenlet-configmap
  namespace: {{ .Release.Namespace }}
data:
  config.yaml: |
    {{- toYaml $config | nindent 4 }}
"""
_BOOTSTRAP: Final = """\
{{- with .Values.config.gardenClientConnection.bootstrapKubeconfig }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
type: Opaque
data:
  kubeconfig: {{ .kubeconfig | b64enc }}
{{- end }}
"""
_ACCOUNT: Final = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Values.serviceAccountName }}
  namespace: {{ .Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: gardener.cloud:system:gardenlet
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: {{ .Values.serviceAccountName }}, namespace: {{ .Release.Namespace }}}
"""
_OVERWRITES: Final = """\
{{- if .Values.imageVectorOverwrite }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: gardenlet-imagevector-overwrite
  namespace: {{ .Release.Namespace }}
data:
  images_overwrite.yaml: |
    {{- .Values.imageVectorOverwrite | nindent 4 }}
{{- end }}
---
{{- if .Values.componentImageVectorOverwrites }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: gardenlet-imagevector-overwrite-components
  namespace: {{ .Release.Namespace }}
data:
  components.yaml: |
    {{- .Values.componentImageVectorOverwrites | nindent 4 }}
{{- end }}
"""
_VALUES: Final = """\
replicaCount: 2
revisionHistoryLimit: 2
serviceAccountName: gardenlet
enableHealthProbes: true
broken: %s
image: {repository: registry.example.org/gardener/gardenlet, pullPolicy: IfNotPresent}
config: {}
"""


def chart_files(version: str, *, broken: bool = False) -> dict[str, bytes]:
    """The files of the chart in one version."""
    about = f"apiVersion: v2\nname: gardenlet\nversion: {version}\nappVersion: v{version}\n"
    files = {
        "Chart.yaml": about,
        "values.yaml": _VALUES % str(broken).lower(),
        "templates/deployment.yaml": _DEPLOYMENT,
        "templates/configmap.yaml": _CONFIG,
        "templates/bootstrap.yaml": _BOOTSTRAP,
        "templates/account.yaml": _ACCOUNT,
        "templates/overwrites.yaml": _OVERWRITES,
    }
    return {name: text.encode() for name, text in files.items()}

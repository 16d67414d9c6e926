"""Charts for tests: read from one text file each, or made by the hundred lines.

In corpus/charts/*.txtar a line `-- name --` begins a file. `user.yaml` holds the values a user gives, `options.yaml`
what else is asked for; neither is part of the chart.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from hortus.render.gotemplate import goyaml
from hortus.render.helm import Capabilities, ChartOptions, ChartSource, Release, RenderRequest

FOLDER = Path(__file__).parent / "corpus" / "charts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.txtar"))
_MARK = re.compile(r"^-- (.+) --$", re.MULTILINE)


class Example(NamedTuple):
    name: str
    files: dict[str, bytes]
    values: dict[str, Any]
    options: dict[str, Any]

    def request(self) -> RenderRequest:
        options = self.options
        return RenderRequest(
            ChartSource.from_files(self.files),
            self.values,
            Release(
                options.get("name", "rel"),
                options.get("namespace", "ns"),
                is_upgrade=options.get("is_upgrade", False),
            ),
            Capabilities(options.get("kube_version", "v1.34.0"), tuple(options.get("api_versions", ()))),
            ChartOptions(include_crds=options.get("include_crds", False), skip_tests=options.get("skip_tests", False)),
        )


def archive(text: str) -> dict[str, bytes]:
    """The files of a text with `-- name --` lines."""
    parts = _MARK.split(text)
    return {name: body.removeprefix("\n").encode() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def example(name: str) -> Example:
    files = archive((FOLDER / f"{name}.txtar").read_text())
    values = goyaml.read(files.pop("user.yaml", b"")) or {}
    options = goyaml.read(files.pop("options.yaml", b"")) or {}
    return Example(name, files, values, options)


SMALL = archive("""-- Chart.yaml --
apiVersion: v2
name: small
version: 1.0.0
-- values.yaml --
replicas: 2
image: nginx
port: 8080
-- templates/_helpers.tpl --
{{- define "small.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
-- templates/deployment.yaml --
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "small.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "small.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "small.labels" . | nindent 8 }}
    spec:
      containers:
        - name: main
          image: {{ .Values.image | quote }}
          ports: [{containerPort: {{ .Values.port }}}]
-- templates/service.yaml --
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {{- include "small.labels" . | nindent 4 }}
  ports:
    - port: {{ .Values.port }}
""")


def large(components: int = 15) -> dict[str, bytes]:
    """A chart the size of a network plugin's: about a hundred lines of templates for each component."""
    files = {
        "Chart.yaml": b"apiVersion: v2\nname: large\nversion: 1.0.0\nappVersion: '1.16'\n",
        "templates/_helpers.tpl": _HELPERS.encode(),
    }
    values = [_VALUES]
    for number in range(components):
        name = f"part{number}"
        values.append(_COMPONENT_VALUES.replace("NAME", name))
        files[f"templates/{name}.yaml"] = _COMPONENT.replace("NAME", name).encode()
    files["values.yaml"] = "".join(values).encode()
    return files


_HELPERS = """{{- define "large.image" -}}
{{- $digest := ternary (printf "@%s" .digest) "" (.useDigest | default false) -}}
{{- printf "%s:%s%s" .repository .tag $digest -}}
{{- end }}
{{- define "large.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: {{ .root.Chart.Name }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
"""
_VALUES = """commonLabels: {team: network}
registry: quay.io
tolerations: [{operator: Exists}, {key: node, operator: Equal, value: "true", effect: NoSchedule}]
"""
_COMPONENT_VALUES = """NAME:
  enabled: true
  replicas: 2
  image: {repository: quay.io/large/NAME, tag: v1.16.1, useDigest: true, digest: "sha256:0123456789abcdef"}
  config: {alpha: 1, beta: "two", gamma: true, delta: [a, b], epsilon: 5000}
  resources: {limits: {cpu: 100m, memory: 128Mi}, requests: {cpu: 50m, memory: 64Mi}}
  prometheus: {enabled: true, port: 9962}
  env: {LOG_LEVEL: info, CLUSTER: default}
  rules: [{groups: [""], resources: [pods, nodes], verbs: [get, list, watch]}]
"""
_COMPONENT = """{{- $values := .Values.NAME }}
{{- if $values.enabled }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: NAME
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "large.labels" (dict "name" "NAME" "root" $) | nindent 4 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME-config
  namespace: {{ .Release.Namespace }}
data:
  {{- range $key, $value := $values.config }}
  {{- if kindIs "slice" $value }}
  {{ $key }}: {{ join " " $value | quote }}
  {{- else if kindIs "bool" $value }}
  {{ $key }}: {{ ternary "enabled" "disabled" $value | quote }}
  {{- else }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
  {{- end }}
  {{- if semverCompare ">=1.25-0" .Capabilities.KubeVersion.Version }}
  policy: "v1"
  {{- else }}
  policy: "v1beta1"
  {{- end }}
  {{- if hasKey $values "tunnel" }}
  tunnel: {{ $values.tunnel | quote }}
  {{- end }}
  port: {{ $values.prometheus.port | int | quote }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: NAME
rules:
{{- toYaml $values.rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: NAME
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: NAME
subjects:
  - kind: ServiceAccount
    name: NAME
    namespace: {{ .Release.Namespace }}
---
apiVersion: apps/v1
kind: {{ ternary "Deployment" "DaemonSet" (gt (int $values.replicas) 0) }}
metadata:
  name: NAME
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "large.labels" (dict "name" "NAME" "root" $) | nindent 4 }}
spec:
  {{- if gt (int $values.replicas) 0 }}
  replicas: {{ $values.replicas }}
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: NAME
  template:
    metadata:
      labels:
        {{- include "large.labels" (dict "name" "NAME" "root" $) | nindent 8 }}
      annotations:
        checksum/config: {{ toJson $values.config | sha256sum }}
        {{- if $values.prometheus.enabled }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ $values.prometheus.port | quote }}
        {{- end }}
    spec:
      serviceAccountName: NAME
      containers:
        - name: NAME
          image: {{ include "large.image" $values.image | quote }}
          env:
            {{- range $key, $value := $values.env }}
            - name: {{ $key }}
              value: {{ $value | quote }}
            {{- end }}
            - name: NODE
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
          {{- with $values.resources }}
          resources:
            {{- toYaml . | trim | nindent 12 }}
          {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | trim | nindent 8 }}
      {{- end }}
{{- end }}
"""

"""Charts that cost: a library of a thousand templates, copied into each of its users, and megabytes of definitions."""

from __future__ import annotations

Files = dict[str, bytes]


def with_library(templates: int = 1000, *, users: int = 5, used: int = 20) -> Files:
    """A chart of `users` subcharts; each has its own copy of one library and calls `used` of its templates."""
    library = {
        "Chart.yaml": b"apiVersion: v2\nname: library\nversion: 1.0.0\ntype: library\n",
        **{f"templates/_part{part}.tpl": _library_part(part, templates // 10) for part in range(10)},
    }
    files = {"Chart.yaml": b"apiVersion: v2\nname: users\nversion: 1.0.0\n"}
    for user in range(users):
        below = f"charts/user{user}/"
        files[below + "Chart.yaml"] = f"apiVersion: v2\nname: user{user}\nversion: 1.0.0\n".encode()
        files[below + "values.yaml"] = _VALUES
        files[below + "templates/all.yaml"] = "".join(
            f'---\n{{{{- include "library.{number}" (dict "name" "user{user}-{number}" "root" .) }}}}\n'
            for number in range(0, templates, max(1, templates // used))
        ).encode()
        files |= {f"{below}charts/library/{name}": data for name, data in library.items()}
    return files


_VALUES = b"""labels: {team: network}
image: {repository: quay.io/some/where, tag: v1.16.1}
replicas: 2
"""


def _library_part(part: int, templates: int) -> bytes:
    return "".join(_TEMPLATE.replace("NUMBER", str(part * templates + number)) for number in range(templates)).encode()


_TEMPLATE = """
{{/* Object NUMBER of its user. */}}
{{- define "library.NUMBER" }}
{{- $values := .root.Values }}
{{- $extra := default dict $values.extraNUMBER }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name | trunc 63 | trimSuffix "-" }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    {{- with $values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- range $key, $value := $extra.labels }}
    {{ $key }}: {{ $value | quote }}
    {{- end }}
spec:
  {{- if not $extra.autoscaled }}
  replicas: {{ $extra.replicas | default $values.replicas }}
  {{- end }}
  template:
    spec:
      {{- if $extra.serviceAccount }}
      serviceAccountName: {{ tpl $extra.serviceAccount .root }}
      {{- else if $extra.token }}
      automountServiceAccountToken: {{ $extra.token }}
      {{- end }}
      containers:
        - name: c{{ add NUMBER 1 }}
          image: {{ printf "%s:%s" $values.image.repository ($extra.tag | default $values.image.tag) | quote }}
          {{- if and $extra.resources (hasKey $extra.resources "limits") }}
          resources: {{- toYaml $extra.resources | nindent 12 }}
          {{- end }}
{{- end }}
"""


def definitions(size: int = 5 << 20, *, folder: str = "templates") -> Files:
    """CustomResourceDefinitions of at least `size` bytes together, in templates/ or in crds/."""
    files = {"Chart.yaml": b"apiVersion: v2\nname: definitions\nversion: 1.0.0\n"}
    made = 0
    while made < size:
        number = len(files)
        text = _definition(number)
        files[f"{folder}/thing{number}.yaml"] = text
        made += len(text)
    return files


def _definition(number: int) -> bytes:
    """One of about 190 kB, as generators write them: long descriptions, deep schemas, no templates."""
    fields = "".join(_FIELD.replace("NAME", f"field{field}") for field in range(60))
    inner = "".join("    " + line for line in fields.splitlines(keepends=True))
    outer = "".join(_GROUP.replace("NAME", f"group{group}") + inner for group in range(4))
    return (_HEAD.replace("NUMBER", str(number)) + outer).encode()


_HEAD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.16.5
  name: thingNUMBERs.example.org
spec:
  group: example.org
  names:
    kind: ThingNUMBER
    listKind: ThingNUMBERList
    plural: thingNUMBERs
    singular: thingNUMBER
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
    schema:
      openAPIV3Schema:
        description: Thing says what there is to be said.
        type: object
        properties:
"""
_GROUP = """          NAME:
            description: NAME holds settings that belong together.
            type: object
            properties:
"""
_FIELD = """            NAME:
              description: |-
                NAME is one of many fields that a generator wrote from the comments of a Go struct.
                It has several lines: some are long, and some are "quoted" or end in a colon:

                - like this one
              properties:
                key:
                  description: The key of the secret to select from.  Must be a valid secret key.
                  maxLength: 253
                  minLength: 1
                  pattern: ^[-._a-zA-Z0-9]+$
                  type: string
                name:
                  default: ""
                  description: 'Name of the referent. More info: https://kubernetes.io/docs/concepts/overview/'
                  type: string
                optional:
                  description: Specify whether the Secret or its key must be defined
                  type: boolean
                weight:
                  anyOf:
                  - type: integer
                  - type: string
                  format: int32
                  x-kubernetes-int-or-string: true
              required:
              - key
              type: object
              x-kubernetes-map-type: atomic
"""

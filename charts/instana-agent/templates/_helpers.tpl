{{/* Values of the Go operator's chart name its image, which cannot run this chart's operator. */}}
{{- define "instana-agent.foreign" -}}
{{- if hasSuffix "/instana-agent-operator" .Values.controllerManager.image.name }}true{{ end -}}
{{- end -}}

{{- define "instana-agent.image" -}}
{{- $image := .Values.controllerManager.image -}}
{{- if include "instana-agent.foreign" . -}}
hortus:{{ .Chart.AppVersion }}
{{- else if $image.digest -}}
{{ $image.name }}@sha256:{{ trimPrefix "sha256:" $image.digest }}
{{- else -}}
{{ $image.name }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Makes a value fit its form: text is text, numbers are numbers, what is null or has become empty is left out. */}}
{{- define "instana-agent.shape" -}}
{{- $value := .value -}}
{{- $form := .form -}}
{{- range $key := keys $value -}}
{{- $inner := index $value $key -}}
{{- $wanted := "" -}}
{{- if kindIs "map" $form -}}
{{- if hasKey $form $key -}}{{- $wanted = index $form $key -}}
{{- else if hasKey $form "*" -}}{{- $wanted = index $form "*" -}}
{{- end -}}
{{- end -}}
{{- if kindIs "invalid" $inner -}}
{{- $_ := unset $value $key -}}
{{- else if kindIs "map" $inner -}}
{{- $was := len $inner -}}
{{- include "instana-agent.shape" (dict "value" $inner "form" $wanted) -}}
{{- if and $was (not $inner) -}}{{- $_ := unset $value $key -}}{{- end -}}
{{- else if kindIs "slice" $inner -}}
{{- $item := "" -}}
{{- if kindIs "slice" $wanted -}}{{- $item = first $wanted -}}{{- end -}}
{{- range $inner -}}
{{- if kindIs "map" . -}}{{- include "instana-agent.shape" (dict "value" . "form" $item) -}}{{- end -}}
{{- end -}}
{{- else if kindIs "string" $wanted -}}
{{- if and (eq $wanted "text") (not (kindIs "string" $inner)) -}}
{{- if and (kindIs "float64" $inner) (eq (floor $inner) $inner) -}}{{- $inner = int64 $inner -}}{{- end -}}
{{- $_ := set $value $key (toString $inner) -}}
{{- else if and (eq $wanted "number") (kindIs "string" $inner) -}}
{{- $_ := set $value $key (int64 $inner) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The spec of a CR: the values that are fields of it. Text that is empty says nothing. */}}
{{- define "instana-agent.spec" -}}
{{- $spec := dict -}}
{{- range $key := keys .form -}}
{{- if hasKey $.values $key -}}{{- $_ := set $spec $key (index $.values $key) -}}{{- end -}}
{{- end -}}
{{- with $spec.podSecurityPolicy -}}
{{- if hasKey . "enable" -}}
{{- $_ := set . "enabled" .enable -}}
{{- $_ := unset . "enable" -}}
{{- end -}}
{{- end -}}
{{- range $key := list "key" "keysSecret" "configuration_yaml" -}}
{{- if and $spec.agent (eq (toString (get $spec.agent $key)) "") -}}{{- $_ := unset $spec.agent $key -}}{{- end -}}
{{- end -}}
{{- range $key := list "cluster" "zone" -}}
{{- $named := get $spec $key -}}
{{- if and (kindIs "map" $named) (not $named.name) -}}{{- $_ := unset $spec $key -}}{{- end -}}
{{- end -}}
{{- include "instana-agent.shape" (dict "value" $spec "form" .form) -}}
{{- toYaml $spec -}}
{{- end -}}

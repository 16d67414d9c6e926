package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var kinds = map[string]any{
	"Deployment":     &appsv1.Deployment{},
	"Pod":            &corev1.Pod{},
	"Service":        &corev1.Service{},
	"ServiceAccount": &corev1.ServiceAccount{},
}

func runStrategic(line []byte) (any, error) {
	var asked struct {
		Kind     string         `json:"kind"`
		Original map[string]any `json:"original"`
		Patch    map[string]any `json:"patch"`
	}
	if err := unmarshal(line, &asked); err != nil {
		return nil, err
	}
	sample, known := kinds[asked.Kind]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", asked.Kind)
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(asked.Original, asked.Patch, sample)
	if err != nil {
		return nil, err
	}
	return map[string]any{"merged": merged}, nil
}

// runSchema describes a Go type as the other side needs it: fields, lists, and how strategic merge treats them.
func runSchema(line []byte) (any, error) {
	var asked struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	sample, known := kinds[asked.Kind]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", asked.Kind)
	}
	return map[string]any{"schema": schemaOf(reflect.TypeOf(sample))}, nil
}

var scalars = []reflect.Type{
	reflect.TypeOf(resource.Quantity{}),
	reflect.TypeOf(intstr.IntOrString{}),
	reflect.TypeOf(metav1.Time{}),
	reflect.TypeOf(metav1.MicroTime{}),
	reflect.TypeOf(runtime.RawExtension{}),
	reflect.TypeOf(metav1.FieldsV1{}),
}

func schemaOf(found reflect.Type) map[string]any {
	for _, scalar := range scalars {
		if found == scalar {
			return map[string]any{"x-kubernetes-preserve-unknown-fields": true}
		}
	}
	switch found.Kind() {
	case reflect.Pointer:
		return schemaOf(found.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		addFields(found, properties)
		return map[string]any{"type": "object", "properties": properties}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(found.Elem())}
	case reflect.Slice:
		if found.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string"}
		}
		return map[string]any{"type": "array", "items": schemaOf(found.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	default:
		return map[string]any{"type": "number"}
	}
}

func addFields(found reflect.Type, properties map[string]any) {
	for i := range found.NumField() {
		field := found.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			addFields(field.Type, properties)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		schema := schemaOf(field.Type)
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			schema["x-kubernetes-patch-strategy"] = strategy
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			schema["x-kubernetes-patch-merge-key"] = key
		}
		properties[name] = schema
	}
}

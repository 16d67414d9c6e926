package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const kind = "Gizmo"

// A history is a sequence of writes to one object. Times are made to tick by the minute, one minute a step, so that the
// other side can foretell them.
type history struct {
	Schemas []json.RawMessage `json:"schemas"`
	Steps   []step            `json:"steps"`
}

type step struct {
	Verb        string           `json:"verb"`
	Manager     string           `json:"manager"`
	Subresource string           `json:"subresource"`
	APIVersion  string           `json:"apiVersion"`
	Force       bool             `json:"force"`
	Schema      int              `json:"schema"`
	Reset       *json.RawMessage `json:"reset"`
	Object      map[string]any   `json:"object"`
}

type outcome struct {
	Object map[string]any `json:"object,omitempty"`
	Error  *failure       `json:"error,omitempty"`
}

var start = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func runHistory(line []byte) (any, error) {
	var asked history
	if err := unmarshal(line, &asked); err != nil {
		return nil, err
	}
	converters := []managedfields.TypeConverter{}
	for _, raw := range asked.Schemas {
		converter, err := typeConverter(raw)
		if err != nil {
			return nil, err
		}
		converters = append(converters, converter)
	}
	outcomes := []outcome{}
	var live *unstructured.Unstructured
	for number, step := range asked.Steps {
		manager, err := fieldManager(step, converters[step.Schema])
		if err != nil {
			return nil, err
		}
		written, err := write(manager, step, live)
		if err != nil {
			outcomes = append(outcomes, outcome{Error: describe(err)})
			continue
		}
		settle(written, start.Add(time.Duration(number)*time.Minute))
		live = written
		outcomes = append(outcomes, outcome{Object: written.DeepCopy().Object})
	}
	return map[string]any{"outcomes": outcomes}, nil
}

func write(manager *managedfields.FieldManager, step step, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	given := &unstructured.Unstructured{Object: step.Object}
	if live == nil {
		live = &unstructured.Unstructured{}
		live.SetAPIVersion(step.APIVersion)
		live.SetKind(kind)
	} else {
		live = live.DeepCopy()
		live.SetAPIVersion(step.APIVersion)
	}
	if step.Verb == "apply" {
		written, err := manager.Apply(live, given, step.Manager, step.Force)
		if err != nil {
			return nil, err
		}
		return asUnstructured(written)
	}
	return asUnstructured(manager.UpdateNoErrors(live, given, step.Manager))
}

func asUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	result, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected object %T", obj)
	}
	return result.DeepCopy(), nil
}

// settle gives the object a UID, as its creation would, and the entries written in this step the step's own time.
func settle(obj *unstructured.Unstructured, now time.Time) {
	obj.SetUID("u")
	entries := obj.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && entries[i].Time.After(start.Add(24*time.Hour)) {
			entries[i].Time = &metav1.Time{Time: now}
		}
	}
	if entries != nil {
		obj.SetManagedFields(entries)
	}
}

func describe(err error) *failure {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return &failure{Message: err.Error(), Code: 500}
	}
	found := &failure{Message: status.Status().Message, Code: int(status.Status().Code)}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			found.Causes = append(found.Causes, map[string]string{
				"reason": string(cause.Type), "message": cause.Message, "field": cause.Field,
			})
		}
	}
	return found
}

func fieldManager(step step, converter managedfields.TypeConverter) (*managedfields.FieldManager, error) {
	version, err := schema.ParseGroupVersion(step.APIVersion)
	if err != nil {
		return nil, err
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if step.Reset != nil {
		set, err := parseSet(*step.Reset)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"v1", "v2"} {
			reset[fieldpath.APIVersion(version.Group+"/"+name)] = fieldpath.NewExcludeSetFilter(set)
		}
	}
	return managedfields.NewDefaultCRDFieldManager(
		converter, sameObject{}, sameObject{}, sameObject{}, version.WithKind(kind), version, step.Subresource, reset,
	)
}

func typeConverter(raw json.RawMessage) (managedfields.TypeConverter, error) {
	if string(raw) == "null" {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	var model spec.Schema
	if err := json.Unmarshal(raw, &model); err != nil {
		return nil, err
	}
	kinds := []any{}
	for _, version := range []string{"v1", "v2"} {
		kinds = append(kinds, map[string]any{"group": "hortus.io", "version": version, "kind": kind})
	}
	model.AddExtension("x-kubernetes-group-version-kind", kinds)
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"root": &model}, false)
}

// sameObject converts between versions by changing nothing but the version's name.
type sameObject struct{}

func (sameObject) Convert(_, _, _ any) error { return errors.New("not used") }

func (sameObject) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	version := target.(schema.GroupVersion)
	given := in.(*unstructured.Unstructured)
	if given.GroupVersionKind().GroupVersion() == version {
		return in, nil
	}
	result := given.DeepCopy()
	result.SetAPIVersion(version.String())
	return result, nil
}

func (sameObject) ConvertFieldLabel(_ schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", errors.New("not used")
}

func (sameObject) Default(runtime.Object) {}

func (sameObject) New(found schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(found)
	return obj, nil
}

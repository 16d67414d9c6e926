package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardener/gardener/pkg/api"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// unmarked stands where a garden writes a time of its own; it is in no answer, nor are a UID and `unversioned`.
var unmarked = metav1.NewTime(time.Unix(1, 0))

const unversioned = "1"

type problem struct {
	Type    string `json:"type"`
	Field   string `json:"field"`
	Value   any    `json:"value,omitempty"`
	Detail  string `json:"detail"`
	Message string `json:"message"`
}

type answer struct {
	Decoding       string         `json:"decoding,omitempty"`
	StrictDecoding string         `json:"strictDecoding,omitempty"`
	OldDecoding    string         `json:"oldDecoding,omitempty"`
	Defaulted      runtime.Object `json:"defaulted,omitempty"`
	Errors         []problem      `json:"errors"`
	Stored         runtime.Object `json:"stored,omitempty"`
	Status         *metav1.Status `json:"status,omitempty"`
	StoredErrors   []problem      `json:"storedErrors,omitempty"`
	Warnings       []string       `json:"warnings,omitempty"`
}

// decoded is an object as a garden reads it.
type decoded struct {
	external, internal runtime.Object
	kind               schema.GroupVersionKind
	strict             string
}

// recorded keeps the errors of a strategy, which the status that a client reads holds as texts only.
type recorded struct {
	rest.RESTCreateUpdateStrategy
	errs *field.ErrorList
}

func (r recorded) Validate(ctx context.Context, object runtime.Object) field.ErrorList {
	*r.errs = r.RESTCreateUpdateStrategy.Validate(ctx, object)
	return *r.errs
}

type recordedUpdate struct {
	rest.RESTUpdateStrategy
	errs *field.ErrorList
}

func (r recordedUpdate) ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList {
	*r.errs = r.RESTUpdateStrategy.ValidateUpdate(ctx, object, old)
	return *r.errs
}

func create(asked question) (any, error) {
	object, err := decode(asked.Object)
	if err != nil {
		return answer{Decoding: err.Error(), Errors: []problem{}}, nil
	}
	told := answer{StrictDecoding: object.strict}
	if !asked.Brief {
		told.Defaulted = object.external
	}
	if object.kind.Group == extensionsv1alpha1.SchemeGroupVersion.Group {
		known, ok := resources[object.kind.Kind]
		if !ok {
			return nil, fmt.Errorf("no validation for kind %s", object.kind.Kind)
		}
		told.Errors = problems(known.validate(object.internal))
		return told, nil
	}
	known, ok := aggregated[object.kind.GroupKind()]
	if !ok {
		return nil, fmt.Errorf("no strategy for kind %s", object.kind.GroupKind())
	}
	ctx, err := named(object.internal)
	if err != nil {
		return nil, err
	}
	if asked.Only == "stored" {
		told.Errors = []problem{}
	} else if object.kind.Kind == "Shoot" {
		told.Errors = problems(plainShoot(object.internal.DeepCopyObject()))
	} else {
		told.Errors = problems(known.objects.Validate(ctx, object.internal.DeepCopyObject()))
	}
	if asked.Only == "plain" {
		return told, nil
	}
	request, err := attributes(object, nil, "")
	if err != nil {
		return nil, err
	}
	if asked.Admission {
		if refused := admit(ctx, request); refused != nil {
			return told, told.end(object, refused, asked.Brief)
		}
	}
	var errs field.ErrorList
	refused := rest.BeforeCreate(recorded{known.objects, &errs}, ctx, object.internal)
	told.StoredErrors = problems(errs)
	if refused == nil && asked.Admission {
		refused = judge(ctx, request)
	}
	if refused == nil {
		told.Warnings = known.objects.WarningsOnCreate(ctx, object.internal)
	}
	return told, told.end(object, refused, asked.Brief)
}

func update(asked question) (any, error) {
	old, err := decode(asked.Old)
	if err != nil {
		return answer{OldDecoding: err.Error(), Errors: []problem{}}, nil
	}
	object, err := decode(asked.Object)
	if err != nil {
		return answer{Decoding: err.Error(), Errors: []problem{}}, nil
	}
	told := answer{StrictDecoding: object.strict}
	if !asked.Brief {
		told.Defaulted = object.external
	}
	if object.kind.Group == extensionsv1alpha1.SchemeGroupVersion.Group {
		known, ok := resources[object.kind.Kind]
		if !ok {
			return nil, fmt.Errorf("no validation for kind %s", object.kind.Kind)
		}
		told.Errors = problems(known.update(object.internal, old.internal))
		return told, nil
	}
	known, ok := aggregated[object.kind.GroupKind()]
	if !ok {
		return nil, fmt.Errorf("no strategy for kind %s", object.kind.GroupKind())
	}
	strategy, ok := rest.RESTUpdateStrategy(known.objects), asked.Subresource == ""
	if !ok {
		strategy, ok = known.subresources[asked.Subresource]
	}
	if !ok {
		return nil, fmt.Errorf("kind %s has no subresource %q", object.kind.Kind, asked.Subresource)
	}
	if _, err := named(old.internal); err != nil {
		return nil, err
	}
	if err := follow(object.internal, old.internal); err != nil {
		return nil, err
	}
	ctx, err := named(object.internal)
	if err != nil {
		return nil, err
	}
	told.Errors = []problem{}
	if asked.Only != "stored" {
		told.Errors = problems(strategy.ValidateUpdate(ctx, object.internal.DeepCopyObject(), old.internal.DeepCopyObject()))
	}
	if asked.Only == "plain" {
		return told, nil
	}
	request, err := attributes(object, old.internal, asked.Subresource)
	if err != nil {
		return nil, err
	}
	if asked.Admission {
		if refused := admit(ctx, request); refused != nil {
			return told, told.end(object, refused, asked.Brief)
		}
	}
	var errs field.ErrorList
	refused := rest.BeforeUpdate(recordedUpdate{strategy, &errs}, ctx, object.internal, old.internal)
	told.StoredErrors = problems(errs)
	if refused == nil && asked.Admission {
		refused = judge(ctx, request)
	}
	if refused == nil {
		told.Warnings = strategy.WarningsOnUpdate(ctx, object.internal, old.internal)
	}
	return told, told.end(object, refused, asked.Brief)
}

// end adds the garden's refusal or else the object that it stores.
func (a *answer) end(object decoded, refused error, brief bool) error {
	if refused != nil {
		found, ok := refused.(apierrors.APIStatus)
		if !ok {
			return refused
		}
		status := found.Status()
		a.Status = &status
		return nil
	}
	if brief {
		return nil
	}
	stored, err := api.Scheme.ConvertToVersion(object.internal, object.kind.GroupVersion())
	if err != nil {
		return err
	}
	plain, err := meta.Accessor(stored)
	if err != nil {
		return err
	}
	plain.SetCreationTimestamp(metav1.Time{})
	plain.SetUID("")
	if plain.GetResourceVersion() == unversioned {
		plain.SetResourceVersion("")
	}
	a.Stored = stored
	return nil
}

func decode(data json.RawMessage) (decoded, error) {
	scheme := api.Scheme
	var typed metav1.TypeMeta
	if err := json.Unmarshal(data, &typed); err == nil && typed.GroupVersionKind().Group == extensionsv1alpha1.SchemeGroupVersion.Group {
		scheme = extensionScheme
	}
	codec := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme, scheme, kubejson.SerializerOptions{Strict: true})
	external, kind, err := codec.Decode(data, nil, nil)
	found := decoded{external: external}
	if err != nil {
		if !runtime.IsStrictDecodingError(err) {
			return found, err
		}
		found.strict = err.Error()
	}
	found.kind = *kind
	rand.Seed(1) // the default of a maintenance window is drawn
	scheme.Default(external)
	if scheme == extensionScheme {
		found.internal = external
		return found, nil
	}
	found.internal, err = scheme.ConvertToVersion(external, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	external.GetObjectKind().SetGroupVersionKind(*kind)
	return found, err
}

// follow fills what a client may leave out of an update, and a garden takes from what it holds.
func follow(object, old runtime.Object) error {
	held, err := meta.Accessor(old)
	if err != nil {
		return err
	}
	plain, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if plain.GetUID() == "" {
		plain.SetUID(held.GetUID())
	}
	if created := plain.GetCreationTimestamp(); created.IsZero() {
		plain.SetCreationTimestamp(held.GetCreationTimestamp())
	}
	if plain.GetResourceVersion() == "" {
		plain.SetResourceVersion(held.GetResourceVersion())
	}
	return nil
}

// named fills what a garden fills before it asks a strategy; returns the context of the object's namespace.
func named(object runtime.Object) (context.Context, error) {
	plain, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if plain.GetName() == "" && plain.GetGenerateName() != "" {
		plain.SetName(plain.GetGenerateName() + "xxxxx")
	}
	if plain.GetUID() == "" {
		plain.SetUID("1")
	}
	if created := plain.GetCreationTimestamp(); created.IsZero() {
		plain.SetCreationTimestamp(unmarked)
	}
	if plain.GetResourceVersion() == "" {
		plain.SetResourceVersion(unversioned)
	}
	return genericapirequest.WithNamespace(context.Background(), plain.GetNamespace()), nil
}

func problems(errs field.ErrorList) []problem {
	found := make([]problem, 0, len(errs))
	for _, err := range errs {
		value := err.BadValue
		if _, unwritable := json.Marshal(value); unwritable != nil {
			value = fmt.Sprint(value)
		}
		if value == field.OmitValueType(struct{}{}) {
			value = nil
		}
		found = append(found, problem{string(err.Type), err.Field, value, err.Detail, err.Error()})
	}
	return found
}

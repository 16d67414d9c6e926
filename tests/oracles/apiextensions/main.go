// Command apiextensions answers questions about schemas with the libraries of kube-apiserver.
//
// One JSON object a line on standard input is a question, one JSON object a line on standard output its answer:
//
//	{"op": "object", "schema": {...}, "object": {...}, "old": {...}}
//	    -> {"pruned": [...], "object": {...}, "errors": [{"path": ..., "message": ..., "reason": ...}]}
//	{"op": "crd", "crd": {...}}              -> {"errors": [...]}
//	{"op": "jsonpath", "text": "{.a}", "object": {...}}  -> {"text": "..."}
//
// A question that cannot be answered gives {"failure": "..."}.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/client-go/util/jsonpath"
)

type question struct {
	Op     string          `json:"op"`
	Schema json.RawMessage `json:"schema"`
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
	CRD    json.RawMessage `json:"crd"`
	Text   string          `json:"text"`
}

type problem struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

type answer struct {
	Pruned  []string       `json:"pruned,omitempty"`
	Object  map[string]any `json:"object,omitempty"`
	Errors  []problem      `json:"errors"`
	Text    string         `json:"text"`
	Failure string         `json:"failure,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		reply, err := reply(lines.Bytes())
		if err != nil {
			reply = answer{Failure: err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			os.Exit(1)
		}
	}
}

func reply(line []byte) (result answer, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{}, err
	}
	switch asked.Op {
	case "object":
		return object(asked)
	case "crd":
		return definition(asked)
	case "jsonpath":
		return path(asked)
	}
	return answer{}, fmt.Errorf("unknown op %q", asked.Op)
}

func object(asked question) (answer, error) {
	var outer apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(asked.Schema, &outer); err != nil {
		return answer{}, err
	}
	var inner apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&outer, &inner, nil); err != nil {
		return answer{}, err
	}
	structural, err := structuralschema.NewStructural(&inner)
	if err != nil {
		return answer{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&inner)
	if err != nil {
		return answer{}, err
	}
	var value, old map[string]any
	if err := utiljson.Unmarshal(asked.Object, &value); err != nil {
		return answer{}, err
	}
	if len(asked.Old) > 0 {
		if err := utiljson.Unmarshal(asked.Old, &old); err != nil {
			return answer{}, err
		}
	}
	pruned := pruning.PruneWithOptions(value, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(value, structural)
	defaulting.Default(value, structural)
	return answer{Pruned: pruned, Object: value, Errors: told(validate(structural, validator, value, old))}, nil
}

func validate(structural *structuralschema.Structural, validator validation.SchemaValidator, value, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	var celOptions []cel.Option
	if old == nil {
		errs = validation.ValidateCustomResource(nil, value, validator)
	} else {
		correlated := common.NewCorrelatedObject(value, old, &model.Structural{Structural: structural})
		celOptions = append(celOptions, cel.WithRatcheting(correlated))
		errs = validation.ValidateCustomResourceUpdate(nil, value, old, validator, validation.WithRatcheting(correlated))
	}
	errs = append(errs, objectmeta.Validate(nil, value, structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, value)...)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	if rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := rules.Validate(context.Background(), nil, structural, value, before, celconfig.RuntimeCELCostBudget, celOptions...)
	return append(errs, found...)
}

func definition(asked question) (answer, error) {
	var outer apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(asked.CRD, &outer); err != nil {
		return answer{}, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&outer)
	outer.Status.StoredVersions = nil
	var inner apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&outer, &inner, nil); err != nil {
		return answer{}, err
	}
	for _, version := range inner.Spec.Versions {
		if version.Storage {
			inner.Status.StoredVersions = []string{version.Name}
			break
		}
	}
	return answer{Errors: told(crdvalidation.ValidateCustomResourceDefinition(context.Background(), &inner))}, nil
}

func path(asked question) (answer, error) {
	parsed := jsonpath.New("path").AllowMissingKeys(true)
	if err := parsed.Parse(asked.Text); err != nil {
		return answer{}, err
	}
	var value any
	if err := utiljson.Unmarshal(asked.Object, &value); err != nil {
		return answer{}, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, value); err != nil {
		return answer{}, err
	}
	return answer{Text: out.String()}, nil
}

func told(errs field.ErrorList) []problem {
	found := make([]problem, 0, len(errs))
	for _, err := range errs {
		found = append(found, problem{Path: err.Field, Message: err.ErrorBody(), Reason: string(err.Type)})
	}
	return found
}

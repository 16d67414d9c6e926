package main

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// unmarshal keeps whole numbers whole, as the API server's decoder does.
func unmarshal(line []byte, into any) error { return utiljson.Unmarshal(line, into) }

func parseSet(raw []byte) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	return set, set.FromJSON(bytes.NewReader(raw))
}

func written(set *fieldpath.Set) string {
	text, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	return string(text)
}

func paths(set *fieldpath.Set) []string {
	found := []string{}
	set.Iterate(func(path fieldpath.Path) { found = append(found, path.String()) })
	return found
}

func runSets(line []byte) (any, error) {
	var asked struct{ Left, Right json.RawMessage }
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	left, err := parseSet(asked.Left)
	if err != nil {
		return nil, err
	}
	right, err := parseSet(asked.Right)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"left":                written(left),
		"paths":               paths(left),
		"union":               written(left.Union(right)),
		"intersection":        written(left.Intersection(right)),
		"difference":          written(left.Difference(right)),
		"recursiveDifference": written(left.RecursiveDifference(right)),
		"leaves":              written(left.Leaves()),
	}, nil
}

func runTyped(line []byte) (any, error) {
	var asked struct {
		Schema json.RawMessage `json:"schema"`
		Left   map[string]any  `json:"left"`
		Right  map[string]any  `json:"right"`
	}
	if err := unmarshal(line, &asked); err != nil {
		return nil, err
	}
	converter, err := typeConverter(asked.Schema)
	if err != nil {
		return nil, err
	}
	left, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: asked.Left}, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	right, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: asked.Right}, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	comparison, err := left.Compare(right)
	if err != nil {
		return nil, err
	}
	fields, err := right.ToFieldSet()
	if err != nil {
		return nil, err
	}
	answer := map[string]any{
		"added":    written(comparison.Added),
		"modified": written(comparison.Modified),
		"removed":  written(comparison.Removed),
		"fields":   written(fields),
		"named":    written(fields.EnsureNamedFieldsAreMembers(right.Schema(), right.TypeRef())),
		"without":  plain(right.RemoveItems(fields.Leaves().Intersection(comparison.Added)).AsValue()),
	}
	if merged, err := left.Merge(right); err == nil {
		answer["merged"] = plain(merged.AsValue())
	}
	return answer, nil
}

func plain(found value.Value) any {
	if found == nil {
		return nil
	}
	return found.Unstructured()
}

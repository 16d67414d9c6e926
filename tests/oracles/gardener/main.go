// Command gardener answers questions about Gardener's objects with Gardener's own packages.
//
// One JSON object a line on standard input is a question, one JSON object a line on standard output its answer:
//
//	{"op": "create", "object": {...}}
//	{"op": "update", "object": {...}, "old": {...}, "subresource": "" or "status" or "binding"}
//	    -> {"decoding": "...", "strictDecoding": "...", "defaulted": {...}, "errors": [...],
//	        "stored": {...}, "status": {...}, "storedErrors": [...], "warnings": [...]}
//	{"op": "gates", "gates": {"InPlaceNodeUpdates": true}}  (of gardener-apiserver, for all later questions)
//	{"op": "garden", "objects": [{...}]}
//	{"op": "window", "begin": "...", "end": "...", "times": ["2026-01-01T00:00:00Z"]}
//	{"op": "hibernation", "schedules": [{"start": ..., "end": ..., "location": ...}], "from": "...", "count": 3}
//	{"op": "poolHash", "pool": "...", "version": "...", "kubelet": {...}, "image": "...", "credentials": {...}}
//	{"op": "tables"}
//
// `errors` are those of the function that validates the kind, on the object with its defaults; a garden also prepares
// an object for its storage before it validates it: `storedErrors`, and either `status` (the garden's refusal) or `stored`.
// `brief: true` leaves both objects out; `only: "plain"` or `only: "stored"` asks for one of both validations.
// `admission: true` asks the plugins of a garden too, which see the objects of the last "garden". A question that cannot
// be answered gives {"failure": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	apiserverfeatures "github.com/gardener/gardener/pkg/apiserver/features"
	"github.com/gardener/gardener/pkg/features"
)

type question struct {
	Op          string            `json:"op"`
	Object      json.RawMessage   `json:"object"`
	Old         json.RawMessage   `json:"old"`
	Subresource string            `json:"subresource"`
	Brief       bool              `json:"brief"`
	Only        string            `json:"only"`
	Admission   bool              `json:"admission"`
	Objects     []json.RawMessage `json:"objects"`
	Gates       map[string]bool   `json:"gates"`
	moments
	poolQuestion
}

func main() {
	apiserverfeatures.RegisterFeatureGates()
	klog.SetLogger(logr.Discard())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		reply, err := reply(lines.Bytes())
		if err != nil {
			reply = map[string]any{"failure": err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			os.Exit(1)
		}
	}
}

func reply(line []byte) (result any, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	switch asked.Op {
	case "create":
		return create(asked)
	case "update":
		return update(asked)
	case "gates":
		return map[string]any{"gates": asked.Gates}, features.DefaultFeatureGate.SetFromMap(asked.Gates)
	case "garden":
		return furnish(asked.Objects)
	case "window":
		return window(asked.moments)
	case "hibernation":
		return hibernations(asked.moments)
	case "poolHash":
		return poolHash(asked.poolQuestion)
	case "tables":
		return tables(), nil
	}
	return nil, fmt.Errorf("unknown op %q", asked.Op)
}

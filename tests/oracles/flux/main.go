// Reads objects as Flux's own types do, and refuses fields that they do not have.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

type request struct {
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
}

func read(asked request) (any, error) {
	kinds := map[string]any{
		"HelmRelease":   &helmv2.HelmRelease{},
		"OCIRepository": &sourcev1.OCIRepository{},
	}
	into, known := kinds[asked.Kind]
	if !known {
		return nil, fmt.Errorf("no kind %q", asked.Kind)
	}
	decoder := json.NewDecoder(bytes.NewReader(asked.Object))
	decoder.DisallowUnknownFields()
	return into, decoder.Decode(into)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked request
		answer := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			answer["panic"] = err.Error()
		} else if found, err := read(asked); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["object"] = found
		}
		text, err := json.Marshal(answer)
		if err != nil {
			text = []byte(`{"panic": "the answer cannot be written"}`)
		}
		fmt.Println(string(text))
	}
}

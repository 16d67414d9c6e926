// Prints the install manifests of Flux, made from a folder of a release as `flux install` makes them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen/install"
)

type request struct {
	Folder     string   `json:"folder"`
	Version    string   `json:"version"`
	Namespace  string   `json:"namespace"`
	Registry   string   `json:"registry"`
	Components []string `json:"components"`
}

func generate(asked request) (string, error) {
	options := install.MakeDefaultOptions()
	options.Version = asked.Version
	options.Namespace = asked.Namespace
	options.Registry = asked.Registry
	options.Components = asked.Components
	options.ComponentsExtra = nil
	made, err := install.Generate(options, asked.Folder)
	if err != nil {
		return "", err
	}
	return made.Content, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked request
		answer := map[string]string{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			answer["panic"] = err.Error()
		} else if content, err := generate(asked); err != nil {
			answer["panic"] = err.Error()
		} else {
			answer["content"] = content
		}
		text, err := json.Marshal(answer)
		if err != nil {
			text = []byte(`{"panic": "the answer cannot be written"}`)
		}
		fmt.Println(string(text))
	}
}

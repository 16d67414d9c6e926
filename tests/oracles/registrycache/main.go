// Command registrycache judges configurations of registry caches and mirrors with the validation of their extension.
//
// One JSON object a line on standard input is a question, one JSON object a line on standard output its answer:
//
//	{"config": {...}, "old": {...}, "path": "providerConfig"}
//	    -> {"errors": [{"path": ..., "message": ..., "reason": ...}], "names": ["registry-quay-io"]}
//
// A configuration that a strict decoder refuses gives {"failure": "..."}. The kind of the configuration says which of the
// two it is; "old" is for caches alone.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/gardener/gardener-extension-registry-cache/pkg/apis/mirror"
	mirrorinstall "github.com/gardener/gardener-extension-registry-cache/pkg/apis/mirror/install"
	mirrorvalidation "github.com/gardener/gardener-extension-registry-cache/pkg/apis/mirror/validation"
	"github.com/gardener/gardener-extension-registry-cache/pkg/apis/registry"
	registryinstall "github.com/gardener/gardener-extension-registry-cache/pkg/apis/registry/install"
	registryvalidation "github.com/gardener/gardener-extension-registry-cache/pkg/apis/registry/validation"
	registryutils "github.com/gardener/gardener-extension-registry-cache/pkg/utils/registry"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type question struct {
	Config json.RawMessage `json:"config"`
	Old    json.RawMessage `json:"old"`
	Path   string          `json:"path"`
}

type problem struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

type answer struct {
	Errors  []problem `json:"errors"`
	Names   []string  `json:"names"`
	Failure string    `json:"failure,omitempty"`
}

func main() {
	scheme := runtime.NewScheme()
	mirrorinstall.Install(scheme)
	registryinstall.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		reply, err := judge(decoder, lines.Bytes())
		if err != nil {
			reply = answer{Failure: err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func judge(decoder runtime.Decoder, line []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{}, err
	}
	config, _, err := decoder.Decode(asked.Config, nil, nil)
	if err != nil {
		return answer{}, err
	}
	var (
		path = field.NewPath(asked.Path)
		made answer
	)
	switch config := config.(type) {
	case *mirror.MirrorConfig:
		made.Errors = problems(mirrorvalidation.ValidateMirrorConfig(config, path))
	case *registry.RegistryConfig:
		found := registryvalidation.ValidateRegistryConfig(config, path)
		if len(asked.Old) > 0 {
			var old registry.RegistryConfig
			if err := runtime.DecodeInto(decoder, asked.Old, &old); err != nil {
				return answer{}, err
			}
			found = append(found, registryvalidation.ValidateRegistryConfigUpdate(&old, config, path)...)
		}
		made.Errors = problems(found)
		for _, cache := range config.Caches {
			made.Names = append(made.Names, registryutils.ComputeServiceName(cache.Upstream, cache.ServiceNameSuffix))
		}
	default:
		return answer{}, fmt.Errorf("no configuration of this extension: %T", config)
	}
	return made, nil
}

func problems(errors field.ErrorList) []problem {
	found := []problem{}
	for _, one := range errors {
		found = append(found, problem{one.Field, one.ErrorBody(), string(one.Type)})
	}
	return found
}

package main

import (
	"encoding/json"
	"fmt"
	_ "unsafe" // for the name of a function that is not exported

	"github.com/go-logr/logr"
	"github.com/spf13/afero"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gardener/gardener/pkg/api/extensions/validation"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/nodeagent"
	agent "github.com/gardener/gardener/pkg/nodeagent/controller/operatingsystemconfig"
)

const (
	changesFile = nodeagentconfigv1alpha1.BaseDir + "/last-computed-osc-changes.yaml"
	releaseFile = "/etc/os-release"
)

// The function writes what it has found into a file, so its own type of result is of no interest.
//
//go:linkname computeChanges github.com/gardener/gardener/pkg/nodeagent/controller/operatingsystemconfig.computeOperatingSystemConfigChanges
func computeChanges(
	log logr.Logger,
	fs afero.Afero,
	osc *extensionsv1alpha1.OperatingSystemConfig,
	checksum string,
	currentOSVersion *string,
	skipPersist bool,
	hostName string,
) (*struct{}, error)

//go:linkname addContainerdEnvironmentDropIn github.com/gardener/gardener/pkg/nodeagent/controller/operatingsystemconfig.addContainerdEnvironmentDropIn
func addContainerdEnvironmentDropIn(osc *extensionsv1alpha1.OperatingSystemConfig)

type configRequest struct {
	Text string `json:"text"`
	// Old is the configuration that the node has, to which a reconcile brings it first; empty on a new one.
	Old string `json:"old"`
	// Release is the content of /etc/os-release.
	Release string `json:"release"`
	Host    string `json:"host"`
}

func decoded(text string) (*extensionsv1alpha1.OperatingSystemConfig, error) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	return osc, runtime.DecodeInto(nodeagent.Codec, []byte(text), osc)
}

func decode(line []byte) (any, error) {
	var asked configRequest
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	return decoded(asked.Text)
}

func validate(line []byte) (any, error) {
	var asked configRequest
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	osc, err := decoded(asked.Text)
	if err != nil {
		return nil, err
	}
	found := []map[string]string{}
	for _, each := range validation.ValidateOperatingSystemConfig(osc) {
		found = append(found, map[string]string{"field": each.Field, "type": string(each.Type), "detail": each.Detail})
	}
	return found, nil
}

// changes works as a reconcile does: the drop-in of containerd is put into the configuration before it is compared, and
// the old one has it, because it was written to the disk after that.
func changes(line []byte) (any, error) {
	var asked configRequest
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	fs := afero.Afero{Fs: afero.NewMemMapFs()}
	if err := fs.WriteFile(releaseFile, []byte(asked.Release), 0o644); err != nil {
		return nil, err
	}
	if asked.Old != "" {
		if err := rememberApplied(fs, asked.Old); err != nil {
			return nil, err
		}
	}
	osc, err := decoded(asked.Text)
	if err != nil {
		return nil, err
	}
	withDropIn(osc)
	version, err := agent.GetOSVersion(osc.Spec.InPlaceUpdates, fs)
	if err != nil {
		return nil, err
	}
	if _, err := computeChanges(logr.Discard(), fs, osc, "new", version, false, asked.Host); err != nil {
		return nil, err
	}
	written, err := fs.ReadFile(changesFile)
	if err != nil {
		return nil, err
	}
	var found any
	err = yaml.Unmarshal(written, &found)
	return found, err
}

// rememberApplied writes a configuration as the agent does once it is applied.
func rememberApplied(fs afero.Afero, text string) error {
	osc, err := decoded(text)
	if err != nil {
		return fmt.Errorf("the old configuration: %w", err)
	}
	withDropIn(osc)
	written, err := runtime.Encode(nodeagent.Codec, osc)
	if err != nil {
		return err
	}
	return fs.WriteFile(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath, written, 0o600)
}

func withDropIn(osc *extensionsv1alpha1.OperatingSystemConfig) {
	if cri := osc.Spec.CRIConfig; cri != nil && cri.Name == extensionsv1alpha1.CRINameContainerD && cri.Containerd != nil {
		addContainerdEnvironmentDropIn(osc)
	}
}

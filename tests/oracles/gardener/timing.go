package main

import (
	"encoding/json"
	"time"
	_ "time/tzdata"
	_ "unsafe"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/gardener/gardener/pkg/utils/validation/admissionplugins"
	"github.com/gardener/gardener/pkg/utils/validation/apigroups"
	"github.com/gardener/gardener/pkg/utils/validation/features"
	"github.com/gardener/gardener/pkg/utils/validation/kubernetesversion"
)

//go:linkname featureGates github.com/gardener/gardener/pkg/utils/validation/features.featureGateVersionRanges
var featureGates map[string]*features.FeatureGateVersionRange

//go:linkname plugins github.com/gardener/gardener/pkg/utils/validation/admissionplugins.admissionPluginsVersionRanges
var plugins map[string]*admissionplugins.AdmissionPluginVersionRange

//go:linkname groupVersions github.com/gardener/gardener/pkg/utils/validation/apigroups.apiGroupVersionRanges
var groupVersions map[string]*apigroups.APIVersionRange

//go:linkname groupResources github.com/gardener/gardener/pkg/utils/validation/apigroups.apiGVRVersionRanges
var groupResources map[string]*apigroups.APIVersionRange

// moments are the fields of questions about times.
type moments struct {
	Begin     string                                  `json:"begin"`
	End       string                                  `json:"end"`
	Times     []time.Time                             `json:"times"`
	Schedules []gardencorev1beta1.HibernationSchedule `json:"schedules"`
	From      time.Time                               `json:"from"`
	Count     int                                     `json:"count"`
}

// poolQuestion are the fields of a question about a pool that is updated in place.
type poolQuestion struct {
	Pool        string          `json:"pool"`
	Version     string          `json:"version"`
	Kubelet     json.RawMessage `json:"kubelet"`
	Image       string          `json:"image"`
	Credentials json.RawMessage `json:"credentials"`
}

type windowAt struct {
	Contains          bool      `json:"contains"`
	EffectiveContains bool      `json:"effectiveContains"`
	Begin             time.Time `json:"begin"`
	End               time.Time `json:"end"`
	Earliest          float64   `json:"earliest"`
	Latest            float64   `json:"latest"`
}

// window says for each time whether the window holds it, and in how many seconds the next maintenance may begin.
func window(asked moments) (any, error) {
	parsed, err := timewindow.ParseMaintenanceTimeWindow(asked.Begin, asked.End)
	if err != nil {
		return nil, err
	}
	effective := gardenerutils.EffectiveMaintenanceTimeWindow(parsed)
	found := []windowAt{}
	for _, at := range asked.Times {
		timewindow.RandomFunc = func(least, _ int64) int64 { return least }
		earliest := effective.RandomDurationUntilNext(at, false)
		timewindow.RandomFunc = func(_, most int64) int64 { return most }
		latest := effective.RandomDurationUntilNext(at, false)
		found = append(found, windowAt{
			parsed.Contains(at), effective.Contains(at), parsed.AdjustedBegin(at), parsed.AdjustedEnd(at),
			earliest.Seconds(), latest.Seconds(),
		})
	}
	return map[string]any{
		"begin": parsed.Begin().Formatted(), "end": parsed.End().Formatted(), "seconds": parsed.Duration().Seconds(),
		"effectiveEnd": effective.End().Formatted(), "at": found,
	}, nil
}

// poolHash is the hash of Gardener that names a pool's state for updates in place.
func poolHash(asked poolQuestion) (any, error) {
	var kubelet *gardencorev1beta1.KubeletConfig
	if err := read(asked.Kubelet, &kubelet); err != nil {
		return nil, err
	}
	var credentials *gardencorev1beta1.ShootCredentials
	if err := read(asked.Credentials, &credentials); err != nil {
		return nil, err
	}
	hash, err := gardenerutils.CalculateWorkerPoolHashForInPlaceUpdate(asked.Pool, &asked.Version, kubelet, asked.Image, credentials)
	return map[string]any{"hash": hash}, err
}

func read(data json.RawMessage, into any) error {
	if len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, into)
}

// tables gives what Gardener knows of Kubernetes by version.
func tables() any {
	return map[string]any{
		"kubernetes": kubernetesversion.SupportedVersions, "featureGates": featureGates, "admissionPlugins": plugins,
		"groupVersions": groupVersions, "groupResources": groupResources,
	}
}

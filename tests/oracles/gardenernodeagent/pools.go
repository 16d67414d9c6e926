package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener/gardener/imagevector"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/nodeagent"
	imagevectorutils "github.com/gardener/gardener/pkg/utils/imagevector"
	fakesecretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
)

const namespace = "shoot--project--name"

type poolsRequest struct {
	Shoot gardencorev1beta1.Shoot `json:"shoot"`
	// Status is the part that the extension of the operating system writes.
	Status extensionsv1alpha1.OperatingSystemConfigStatus `json:"status"`
}

type poolSecret struct {
	Name     string `json:"name"`
	Checksum string `json:"checksum"`
	Text     string `json:"text"`
}

// pools makes the Secrets of a Shoot's worker pools, by name of the pool, as gardenlet does.
func pools(line []byte) (any, error) {
	var asked poolsRequest
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	kubernetes.GardenScheme.Default(&asked.Shoot)
	ctx := context.Background()
	seed := fakeclient.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(authorities()...).Build()
	values, err := valuesOf(&asked.Shoot)
	if err != nil {
		return nil, err
	}
	manager := fakesecretsmanager.New(seed, namespace)
	maker := operatingsystemconfig.New(logr.Discard(), seed, manager, values, time.Second, time.Second, time.Second)
	if err := maker.Deploy(ctx); err != nil {
		return nil, err
	}
	found := map[string]poolSecret{}
	for pool, made := range maker.WorkerPoolNameToOperatingSystemConfigsMap() {
		osc := made.Original.Object
		osc.Status = asked.Status
		secret, err := nodeagent.OperatingSystemConfigSecret(
			ctx, seed, osc, made.Original.GardenerNodeAgentSecretName, pool, true,
		)
		if err != nil {
			return nil, err
		}
		found[pool] = poolSecret{
			Name:     secret.Name,
			Checksum: secret.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig],
			Text:     string(secret.Data[nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig]),
		}
	}
	return found, nil
}

func authorities() []client.Object {
	var found []client.Object
	for _, name := range []string{v1beta1constants.SecretNameCACluster, v1beta1constants.SecretNameCAKubelet} {
		found = append(found, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Data:       map[string][]byte{"bundle.crt": []byte("the authority " + name)},
		})
	}
	return found
}

func valuesOf(shoot *gardencorev1beta1.Shoot) (*operatingsystemconfig.Values, error) {
	wanted, err := semver.NewVersion(shoot.Spec.Kubernetes.Version)
	if err != nil {
		return nil, err
	}
	images := map[string]*imagevectorutils.Image{}
	for _, name := range []string{
		imagevector.ContainerImageNameGardenerNodeAgent,
		imagevector.ContainerImageNamePauseContainer,
		imagevector.ContainerImageNameValitail,
		imagevector.ContainerImageNameOpentelemetryCollector,
	} {
		repository, tag := "registry.example.org/"+name, "v1"
		images[name] = &imagevectorutils.Image{Name: name, Repository: &repository, Tag: &tag}
	}
	values := &operatingsystemconfig.Values{
		InitValues: operatingsystemconfig.InitValues{APIServerURL: "https://api.example.org"},
		OriginalValues: operatingsystemconfig.OriginalValues{
			CABundle:               "the authority of the cloud",
			ClusterDNSAddresses:    []string{"100.64.0.10"},
			ClusterDomain:          gardencorev1beta1.DefaultDomain,
			Images:                 images,
			KubeletConfig:          shoot.Spec.Kubernetes.Kubelet,
			KubeProxyEnabled:       true,
			SSHAccessEnabled:       true,
			SSHPublicKeys:          []string{"ssh-rsa none"},
			NodeMonitorGracePeriod: metav1.Duration{Duration: 40 * time.Second},
			PrimaryIPFamily:        gardencorev1beta1.IPFamilyIPv4,
			KubeProxyConfig:        shoot.Spec.Kubernetes.KubeProxy,
			Region:                 &shoot.Spec.Region,
		},
		Namespace:         namespace,
		KubernetesVersion: wanted,
		Workers:           shoot.Spec.Provider.Workers,
	}
	if shoot.Status.Credentials != nil {
		values.CredentialsRotationStatus = shoot.Status.Credentials.Rotation
	}
	return values, nil
}

package main

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	core "github.com/gardener/gardener/pkg/api/core/validation"
	extensions "github.com/gardener/gardener/pkg/api/extensions/validation"
	internalcore "github.com/gardener/gardener/pkg/apis/core"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/backupbucket"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/backupentry"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/cloudprofile"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/controllerdeployment"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/controllerinstallation"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/controllerregistration"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/exposureclass"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/internalsecret"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/namespacedcloudprofile"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/project"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/quota"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/secretbinding"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/seed"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/shoot"
	"github.com/gardener/gardener/pkg/apiserver/registry/core/shootstate"
	"github.com/gardener/gardener/pkg/apiserver/registry/operations/bastion"
	"github.com/gardener/gardener/pkg/apiserver/registry/security/credentialsbinding"
	"github.com/gardener/gardener/pkg/apiserver/registry/security/workloadidentity"
	"github.com/gardener/gardener/pkg/apiserver/registry/seedmanagement/gardenlet"
	"github.com/gardener/gardener/pkg/apiserver/registry/seedmanagement/managedseed"
	"github.com/gardener/gardener/pkg/apiserver/registry/seedmanagement/managedseedset"
)

// rotation is the default of gardener-apiserver's flag --shoot-credentials-rotation-interval.
const rotation = 90 * 24 * time.Hour

// served is a kind that gardener-apiserver serves: one strategy for the objects, others for their subresources.
type served struct {
	objects      rest.RESTCreateUpdateStrategy
	subresources map[string]rest.RESTUpdateStrategy
}

var aggregated = map[schema.GroupKind]served{
	core_("Shoot"): {shoot.NewStrategy(rotation), map[string]rest.RESTUpdateStrategy{
		"status": shoot.NewStatusStrategy(), "binding": shoot.NewBindingStrategy(),
	}},
	core_("Seed"):                     {seed.NewStrategy(), status(seed.NewStatusStrategy())},
	core_("CloudProfile"):             {cloudprofile.Strategy, status(cloudprofile.StatusStrategy)},
	core_("NamespacedCloudProfile"):   {namespacedcloudprofile.Strategy, status(namespacedcloudprofile.StatusStrategy)},
	core_("SecretBinding"):            {secretbinding.Strategy, nil},
	core_("Project"):                  {project.Strategy, status(project.StatusStrategy)},
	core_("Quota"):                    {quota.Strategy, nil},
	core_("ExposureClass"):            {exposureclass.NewStrategy(), nil},
	core_("InternalSecret"):           {internalsecret.Strategy, nil},
	core_("ShootState"):               {shootstate.Strategy, nil},
	core_("BackupBucket"):             {backupbucket.Strategy, status(backupbucket.StatusStrategy)},
	core_("BackupEntry"):              {backupentry.Strategy, status(backupentry.StatusStrategy)},
	core_("ControllerDeployment"):     {controllerdeployment.Strategy, nil},
	core_("ControllerRegistration"):   {controllerregistration.Strategy, nil},
	core_("ControllerInstallation"):   {controllerinstallation.Strategy, status(controllerinstallation.StatusStrategy)},
	security_("CredentialsBinding"):   {credentialsbinding.Strategy, nil},
	security_("WorkloadIdentity"):     {workloadidentity.Strategy, nil},
	operations_("Bastion"):            {bastion.Strategy, status(bastion.StatusStrategy)},
	seedmanagement_("ManagedSeed"):    {managedseed.NewStrategy(), status(managedseed.NewStatusStrategy())},
	seedmanagement_("ManagedSeedSet"): {managedseedset.NewStrategy(), status(managedseedset.NewStatusStrategy())},
	seedmanagement_("Gardenlet"):      {gardenlet.NewStrategy(), status(gardenlet.NewStatusStrategy())},
}

// plainShoot validates as the function of the package does, without what the strategy adds.
func plainShoot(object runtime.Object) field.ErrorList {
	return core.ValidateShoot(object.(*internalcore.Shoot))
}

// resource is a kind that stands in the seed as a resource of a CRD.
type resource struct {
	validate func(runtime.Object) field.ErrorList
	update   func(object, old runtime.Object) field.ErrorList
}

var resources = map[string]resource{
	"BackupBucket":            checked(extensions.ValidateBackupBucket, extensions.ValidateBackupBucketUpdate),
	"BackupEntry":             checked(extensions.ValidateBackupEntry, extensions.ValidateBackupEntryUpdate),
	"Bastion":                 checked(extensions.ValidateBastion, extensions.ValidateBastionUpdate),
	"ContainerRuntime":        checked(extensions.ValidateContainerRuntime, extensions.ValidateContainerRuntimeUpdate),
	"ControlPlane":            checked(extensions.ValidateControlPlane, extensions.ValidateControlPlaneUpdate),
	"DNSRecord":               checked(extensions.ValidateDNSRecord, extensions.ValidateDNSRecordUpdate),
	"Extension":               checked(extensions.ValidateExtension, extensions.ValidateExtensionUpdate),
	"Infrastructure":          checked(extensions.ValidateInfrastructure, extensions.ValidateInfrastructureUpdate),
	"Network":                 checked(extensions.ValidateNetwork, extensions.ValidateNetworkUpdate),
	"OperatingSystemConfig":   checked(extensions.ValidateOperatingSystemConfig, extensions.ValidateOperatingSystemConfigUpdate),
	"SelfHostedShootExposure": checked(extensions.ValidateSelfHostedShootExposure, extensions.ValidateSelfHostedShootExposureUpdate),
	"Worker":                  checked(extensions.ValidateWorker, extensions.ValidateWorkerUpdate),
}

var extensionScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}()

func checked[T runtime.Object](validate func(T) field.ErrorList, update func(object, old T) field.ErrorList) resource {
	return resource{
		func(object runtime.Object) field.ErrorList { return validate(object.(T)) },
		func(object, old runtime.Object) field.ErrorList { return update(object.(T), old.(T)) },
	}
}

func status(strategy rest.RESTUpdateStrategy) map[string]rest.RESTUpdateStrategy {
	return map[string]rest.RESTUpdateStrategy{"status": strategy}
}

func core_(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "core.gardener.cloud", Kind: kind}
}

func security_(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "security.gardener.cloud", Kind: kind}
}

func operations_(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "operations.gardener.cloud", Kind: kind}
}

func seedmanagement_(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "seedmanagement.gardener.cloud", Kind: kind}
}

"""The feature gates of Kubernetes' components by version, and the problems of setting them.

Source: gardener/gardener, pkg/utils/validation/features, the same in releases 1.148 to 1.150; Gardener has it from
kubernetes/kubernetes, test/compatibility_lifecycle/reference/versioned_feature_list.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from hortus.gardener.shoots.facts import RuleFacts, Span
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid

VERTICAL_POD_AUTOSCALER: Final = frozenset(("CPUStartupBoost", "InPlace", "PerVPAConfig"))
"""Feature gates of the Vertical Pod Autoscaler, which has versions of its own."""


class FeatureGate(NamedTuple):
    """The versions that have a gate, and from which version it is fixed on or off."""

    span: Span
    locked: Span | None = None
    value: bool = True


def gate_problems(gates: Mapping[str, bool], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of gates that a version does not have or does not let anyone set."""
    for name, value in gates.items():
        gate, at = GATES.get(name), f"{path}.{name}"
        if gate is None:
            yield invalid(at, name, f"unknown feature gate {name}")
        elif facts.normal is None:
            yield invalid(at, name, facts.unreadable)
        elif not gate.span.covers(facts.normal):
            yield forbidden(at, f"not supported in Kubernetes version {facts.version}")
        elif gate.locked is not None and gate.locked.covers(facts.normal) and value != gate.value:
            asked, fixed = str(value).lower(), str(gate.value).lower()
            yield forbidden(at, f"cannot set feature gate to {asked}, feature is locked to {fixed}")


def autoscaler_gate_problems(gates: Mapping[str, bool], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """The first gate that the Vertical Pod Autoscaler does not have."""
    for name in gates:
        if name not in VERTICAL_POD_AUTOSCALER:
            yield invalid(f"{path}.{name}", name, "unknown feature gate")
            return


def _gate(words: list[str]) -> FeatureGate:
    span, locked, value = Span(), None, True
    for word in words:
        if "@" in word:
            fixed, _, since = word.partition("@")
            locked, value = Span.of(f"{since}-"), fixed == "on"
        else:
            span = Span.of(word)
    return FeatureGate(span, locked, value)


# Each line is a gate, `added-removed` where a version added or removed it, `on@` or `off@` the version that fixed it.
_TABLE = """
AdmissionWebhookMatchConditions -1.33 on@1.30
AggregatedDiscoveryEndpoint -1.33 on@1.30
AggregatedDiscoveryRemoveBetaType 1.33- on@1.35
AllAlpha 1.17-
AllBeta 1.17-
AllowDNSOnlyNodeCSR 1.31-
AllowInsecureKubeletCertificateSigningRequests 1.31-
AllowOverwriteTerminationGracePeriodSeconds 1.32- off@1.35
AllowParsingUserUIDFromCertAuth 1.33-
AllowServiceExternalIPs 1.36-
AllowServiceLBStatusOnNonLB 1.29-1.35 off@1.32
AllowUnsafeMalformedObjectDeletion 1.32-
AnonymousAuthConfigurableEndpoints 1.31- on@1.34
AnyVolumeDataSource on@1.33
APIListChunking -1.33 on@1.29
APIPriorityAndFairness -1.31 on@1.29
APIResponseCompression
APIServerIdentity
APIServerTracing on@1.34
APIServingWithRoutine 1.30-
AppArmor -1.33 on@1.31
AppArmorFields 1.30-1.33 on@1.31
AuthorizeNodeWithSelectors 1.31- on@1.34
AuthorizePodWebsocketUpgradeCreatePermission 1.35-
AuthorizeWithSelectors 1.31- on@1.34
BtreeWatchCache 1.32- on@1.33
CBORServingAndStorage 1.32-
ChangeContainerStatusOnKubeletRestart 1.35-
ClearingNominatedNodeNameAfterBinding 1.34-
CloudControllerManagerWatchBasedRoutesReconciliation 1.35-
CloudControllerManagerWebhook
CloudDualStackNodeIPs -1.32 on@1.30
ClusterTrustBundle
ClusterTrustBundleProjection 1.29-
ComponentFlagz 1.32-
ComponentSLIs -1.35
ComponentStatusz 1.32-
ConcurrentWatchObjectDecode 1.31-
ConsistentHTTPGetHandlers 1.26-1.31 on@1.30
ConsistentListFromCache 1.28- on@1.34
ConstrainedImpersonation 1.35-
ContainerCheckpoint
ContainerRestartRules 1.34-
ContainerStopSignals 1.33-
ContextualLogging on@1.30
ControllerManagerReleaseLeaderElectionLockOnExit 1.36-
CoordinatedLeaderElection 1.31-
CPUManager -1.33 on@1.26
CPUManagerPolicyAlphaOptions
CPUManagerPolicyBetaOptions
CPUManagerPolicyOptions on@1.33
CRDObservedGenerationTracking 1.35-
CRDValidationRatcheting 1.28- on@1.33
CRIListStreaming 1.36-
CronJobsScheduledAnnotation 1.28-1.35 on@1.32
CrossNamespaceVolumeDataSource
CSIMigrationPortworx -1.36 on@1.33
CSIMigrationRBD -1.31
CSINodeExpandSecret -1.31 on@1.29
CSIServiceAccountTokenSecrets 1.35- on@1.36
CSIVolumeHealth
CustomCPUCFSQuotaPeriod
CustomResourceFieldSelectors 1.30- on@1.32
CustomResourceValidationExpressions -1.31 on@1.29
DeclarativeValidation 1.33- on@1.36
DeclarativeValidationBeta 1.36-
DeclarativeValidationTakeover 1.33-
DefaultHostNetworkHostPortsInPodTemplates 1.28-1.31
DeploymentReplicaSetTerminatingReplicas 1.33-
DetectCacheInconsistency 1.34-
DevicePluginCDIDevices 1.28-1.34 on@1.31
DisableAllocatorDualWrite 1.31- on@1.35
DisableCloudProviders -1.33 on@1.31
DisableCPUQuotaWithExclusiveCPUs 1.33-
DisableKubeletCloudCredentialProviders -1.33 on@1.31
DisableNodeKubeProxyVersion 1.29- on@1.36
DRAAdminAccess 1.32- on@1.36
DRAConsumableCapacity 1.34-
DRAControlPlaneController 1.26-1.32
DRADeviceBindingConditions 1.34-
DRADeviceTaintRules 1.35-
DRADeviceTaints 1.33-
DRAExtendedResource 1.34-
DRAListTypeAttributes 1.36-
DRANodeAllocatableResources 1.36-
DRAPartitionableDevices 1.33-
DRAPrioritizedList 1.33-
DRAResourceClaimDeviceStatus 1.32-
DRAResourceClaimGranularStatusAuthorization 1.36-
DRAResourcePoolStatus 1.36-
DRASchedulerFilterTimeout 1.34-
DRAWorkloadResourceClaims 1.36-
DynamicResourceAllocation on@1.35
EfficientWatchResumption -1.33 on@1.24
ElasticIndexedJob -1.34 on@1.31
EnvFiles 1.34-
EventedPLEG
ExecProbeTimeout on@1.35
ExtendWebSocketsToKubelet 1.36-
ExternalServiceAccountTokenSigner 1.32- on@1.36
GangScheduling 1.35-
GenericWorkload 1.35-
GitRepoVolumeDriver 1.33- off@1.36
GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority
HonorPVReclaimPolicy -1.36 on@1.33
HostnameOverride 1.34-
HPAConfigurableTolerance 1.33-
HPAContainerMetrics 1.20-1.32 on@1.30
HPAScaleToZero
ImageMaximumGCAge 1.29- on@1.35
ImageVolume 1.31- on@1.36
ImageVolumeWithDigest 1.36-
InformerResourceVersion 1.30-
InPlacePodLevelResourcesVerticalScaling 1.35-
InPlacePodVerticalScaling 1.27- on@1.35
InPlacePodVerticalScalingAllocatedStatus 1.32-1.36
InPlacePodVerticalScalingExclusiveCPUs 1.32-
InPlacePodVerticalScalingExclusiveMemory 1.34-
InPlacePodVerticalScalingInitContainers 1.36-
InTreePluginAWSUnregister -1.31
InTreePluginAzureDiskUnregister -1.31
InTreePluginAzureFileUnregister -1.31
InTreePluginGCEUnregister -1.31
InTreePluginOpenStackUnregister -1.31
InTreePluginPortworxUnregister -1.36
InTreePluginRBDUnregister -1.31
InTreePluginvSphereUnregister -1.31
JobBackoffLimitPerIndex 1.28- on@1.33
JobManagedBy 1.30- on@1.35
JobPodFailurePolicy -1.33 on@1.31
JobPodReplacementPolicy 1.28- on@1.34
JobReadyPods -1.31 on@1.29
JobSuccessPolicy 1.30- on@1.33
KMSv1 1.28-
KMSv2 1.25-1.32 on@1.29
KMSv2KDF 1.28-1.32 on@1.29
KubeletCgroupDriverFromCRI 1.28- on@1.34
KubeletCrashLoopBackOffMax 1.32-
KubeletEnsureSecretPulledImages 1.33-
KubeletFineGrainedAuthz 1.32- on@1.36
KubeletInUserNamespace
KubeletPodResourcesDynamicResources on@1.36
KubeletPodResourcesGet on@1.36
KubeletPodResourcesListUseActivePods 1.34-
KubeletPSI 1.33- on@1.36
KubeletRegistrationGetOnExistsOnly 1.32-
KubeletSeparateDiskGC 1.29-
KubeletServiceAccountTokenForCredentialProviders 1.33-
KubeletTracing on@1.34
KubeProxyDrainingTerminatingNodes 1.28-1.33 on@1.31
LegacyServiceAccountTokenCleanUp 1.28-1.32 on@1.30
LegacySidecarContainers 1.33-1.34
ListFromCacheSnapshot 1.33-
LoadBalancerIPMode 1.29-1.35 on@1.32
LocalStorageCapacityIsolationFSQuotaMonitoring
LogarithmicScaleDown on@1.31
ManifestBasedAdmissionControlConfig 1.36-
MatchLabelKeysInPodAffinity 1.29- on@1.33
MatchLabelKeysInPodTopologySpread
MatchLabelKeysInPodTopologySpreadSelectorMerge 1.34-
MaxUnavailableStatefulSet
MemoryManager 1.21-1.36 on@1.32
MemoryQoS
MinDomainsInPodTopologySpread 1.24-1.32 on@1.30
MultiCIDRServiceAllocator on@1.34
MutableCSINodeAllocatableCount 1.33- on@1.36
MutablePodResourcesForSuspendedJobs 1.35-
MutablePVNodeAffinity 1.35-
MutableSchedulingDirectivesForSuspendedJobs 1.35-
MutatingAdmissionPolicy 1.30-
NativeHistograms 1.36-
NewVolumeManagerReconstruction 1.25-1.32 on@1.30
NFTablesProxyMode 1.29- on@1.33
NodeDeclaredFeatures 1.35-
NodeInclusionPolicyInPodTopologySpread on@1.33
NodeLogQuery on@1.36
NodeOutOfServiceVolumeDetach 1.24-1.32 on@1.28
NodeSwap on@1.34
NominatedNodeNameForExpectation 1.34-
OpenAPIEnums
OpportunisticBatching 1.35-
OrderedNamespaceDeletion 1.33- on@1.34
PDBUnhealthyPodEvictionPolicy -1.33 on@1.31
PersistentVolumeClaimUnusedSinceTime 1.36-
PersistentVolumeLastPhaseTransitionTime 1.28-1.33 on@1.31
PLEGOnDemandRelist 1.36-
PodAndContainerStatsFromCRI
PodCertificateRequest 1.34-
PodDeletionCost
PodDisruptionConditions -1.34 on@1.31
PodHostIPs 1.28-1.32 on@1.30
PodIndexLabel 1.28-1.35 on@1.32
PodLevelResourceManagers 1.36-
PodLevelResources 1.32-
PodLifecycleSleepAction 1.29- on@1.34
PodLifecycleSleepActionAllowZero 1.32- on@1.34
PodLogsQuerySplitStreams 1.32-
PodObservedGenerationTracking 1.33- on@1.35
PodReadyToStartContainersCondition 1.28-
PodsAPI 1.36-
PodSchedulingReadiness on@1.30
PodTopologyLabelsAdmission 1.33-
PortForwardWebsockets 1.30-
PreferAlignCpusByUncoreCache 1.32-
PreferSameTrafficDistribution 1.33- on@1.35
PreventStaticPodAPIReferences 1.34-
ProbeHostPodSecurityStandards 1.34-1.35 on@1.34
ProcMountType on@1.36
QOSReserved
ReadWriteOncePod -1.31 on@1.29
RecoverVolumeExpansionFailure 1.28- on@1.34
RecursiveReadOnlyMounts 1.30- on@1.33
ReduceDefaultCrashLoopBackOffDecay 1.33-
RelaxedDNSSearchValidation 1.32- on@1.34
RelaxedEnvironmentVariableValidation 1.30- on@1.34
RelaxedServiceNameValidation 1.34-
ReloadKubeletClientCAFile 1.36-
ReloadKubeletServerCertificateFile 1.31-
RemainingItemCount -1.33 on@1.29
RemoteRequestHeaderUID 1.32-
ResilientWatchCacheInitialization 1.31- on@1.34
ResourceHealthStatus 1.31-
ResourceHealthStatusMessage 1.36-
RestartAllContainersOnContainerExits 1.35-
RetryGenerateName 1.30- on@1.32
RotateKubeletServerCertificate
RuntimeClassInImageCriApi 1.29-
SchedulerAsyncAPICalls 1.34-
SchedulerAsyncPreemption 1.32-
SchedulerPopFromBackoffQ 1.33-
SchedulerQueueingHints 1.28- on@1.34
SELinuxChangePolicy 1.32- on@1.36
SELinuxMount 1.30-
SELinuxMountReadWriteOncePod on@1.29
SeparateCacheWatchRPC 1.28- off@1.36
SeparateTaintEvictionController 1.29- on@1.34
ServerSideApply 1.14-1.32 on@1.22
ServerSideFieldValidation 1.23-1.32 on@1.27
ServiceAccountNodeAudienceRestriction 1.32-
ServiceAccountTokenJTI 1.29- on@1.32
ServiceAccountTokenNodeBinding 1.29- on@1.33
ServiceAccountTokenNodeBindingValidation 1.29- on@1.32
ServiceAccountTokenPodNodeInfo 1.29- on@1.32
ServiceCIDRStatusFieldWiping 1.36-
ServiceNodePortStaticSubrange -1.31 on@1.29
ServiceTrafficDistribution 1.30-1.36 on@1.33
ShardedListAndWatch 1.36-
SidecarContainers 1.28- on@1.33
SizeBasedListCostEstimate 1.34-
SizeMemoryBackedVolumes 1.20-1.35 on@1.32
SkipReadOnlyValidationGCE 1.28-1.31
StableLoadBalancerNodeSet -1.32 on@1.30
StaleControllerConsistencyDaemonSet 1.36-
StaleControllerConsistencyJob 1.36-
StaleControllerConsistencyReplicaSet 1.36-
StaleControllerConsistencyStatefulSet 1.36-
StatefulSetAutoDeletePVC 1.23-1.35 on@1.32
StatefulSetStartOrdinal -1.34 on@1.31
StorageCapacityScoring 1.33-
StorageNamespaceIndex 1.30-
StorageVersionAPI
StorageVersionHash
StorageVersionMigrator 1.30-
StreamingCollectionEncodingToJSON 1.33- on@1.34
StreamingCollectionEncodingToProtobuf 1.33- on@1.34
StrictCostEnforcementForVAP 1.30-1.35 on@1.32
StrictCostEnforcementForWebhooks 1.30-1.35 on@1.32
StrictIPCIDRValidation 1.33-
StructuredAuthenticationConfiguration 1.29- on@1.34
StructuredAuthenticationConfigurationEgressSelector 1.34-
StructuredAuthenticationConfigurationJWKSMetrics 1.35-
StructuredAuthorizationConfiguration 1.29-1.36 on@1.32
SupplementalGroupsPolicy 1.31- on@1.35
SystemdWatchdog 1.32- on@1.35
TaintTolerationComparisonOperators 1.35-
TokenRequestServiceAccountUIDValidation 1.34-
TopologyAwareHints -1.36 on@1.33
TopologyAwareWorkloadScheduling 1.36-
TopologyManagerPolicyAlphaOptions
TopologyManagerPolicyBetaOptions
TopologyManagerPolicyOptions on@1.32
TranslateStreamCloseWebsocketRequests 1.29-
UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy 1.28-
UserNamespacesHostNetworkSupport 1.35-
UserNamespacesPodSecurityStandards 1.29-1.35
UserNamespacesSupport 1.28- on@1.36
ValidatingAdmissionPolicy -1.32 on@1.30
VolumeAttributesClass 1.29- on@1.36
VolumeCapacityPriority -1.33
VolumeLimitScaling 1.35-
WatchBookmark -1.33 on@1.17
WatchCacheInitializationPostStartHook 1.31-
WatchFromStorageWithoutResourceVersion -1.36 off@1.33
WatchList
WatchListClient 1.30-
WindowsCPUAndMemoryAffinity 1.32-
WindowsGracefulNodeShutdown 1.32-
WindowsHostNetwork
WinDSR on@1.34
WinOverlay on@1.34
WorkloadAwarePreemption 1.36-
WorkloadWithJob 1.36-
ZeroLimitedNominalConcurrencyShares 1.29-1.32 on@1.30
"""
GATES: Final = {name: _gate(words) for name, *words in map(str.split, _TABLE.strip().splitlines())}

//! In which order, and when, does Go write the fields of a pod template and of canary steps, and
//! what does the API server fill in where a field is missing?
//!
//! The tables are data: one entry per struct of the Kubernetes API (library 0.34) and of the
//! steps. Go encodes fields in the order of their declaration, so the order here decides hashes;
//! it never changed between releases, new fields were only inserted. Structs that Go embeds are
//! written out. A field is `key`, marker, kind:
//!
//! | marker | the field is written |
//! |---|---|
//! | `?` | unless it is zero: `""`, `0`, `false`, an empty list or map |
//! | `*` | when it was given, even as zero (a pointer) |
//! | `!` | always, as zero when it was not given (a list as `null`) |
//! | `&` | always, as `null` when it was not given (a pointer) |
//! | `~` | when it was given; before library 0.34 always, as `null` |
//!
//! After `=` stands what counts when templates are compared: mostly the API server's default, which
//! a ReplicaSet has and a Rollout has not. It replaces what the marker takes for not given. Not
//! defaulted in templates: `enableServiceLinks`, requests from limits, host ports.

#![allow(non_upper_case_globals, reason = "the tables bear the names of the Kubernetes structs")]

/// One struct.
pub(super) struct Struct {
    /// In the order in which Go writes them.
    pub(super) fields: &'static [Field],
    /// A bit for each field that may be written where nothing is given.
    pub(super) speaking: u64,
}

/// One field of a struct.
pub(super) struct Field {
    pub(super) key: &'static str,
    /// What stands before its value: a comma, the key and a colon.
    pub(super) opening: &'static str,
    pub(super) when: When,
    pub(super) kind: FieldType,
    pub(super) compared: Compared,
}

impl Field {
    /// Is it certain that nothing is written where nothing is given? True of most fields, and most
    /// are not given.
    const fn is_nothing_when_absent(&self) -> bool {
        matches!(self.compared, Compared::AsGiven)
            && matches!(self.when, When::NotZero | When::Given)
    }
}

impl Struct {
    const fn of(fields: &'static [Field]) -> Self {
        assert!(fields.len() <= FIELDS_LIMIT);
        let (mut speaking, mut at) = (0, 0);
        while at < fields.len() {
            if !fields[at].is_nothing_when_absent() {
                speaking |= 1 << at;
            }
            at += 1;
        }
        Struct { fields, speaking }
    }
}

/// No struct has more fields; a writer keeps a place and a bit for each.
pub(super) const FIELDS_LIMIT: usize = 48;

/// When a field is written; the markers of this file's table, in its order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    NotZero,
    Given,
    Always,
    AlwaysOrNull,
    GivenOrLegacyNull,
}

/// What a field holds.
pub(super) enum FieldType {
    Text,
    Number,
    Flag,
    IntOrText,
    Quantity,
    /// A moment, in any zone and as fine as it likes: volumes are stored as they were typed.
    Time,
    /// Any JSON, written as it is.
    Json,
    List(&'static FieldType),
    Map(&'static FieldType),
    Struct(&'static Struct),
}

/// What counts when templates are compared.
#[derive(Clone, Copy)]
pub(super) enum Compared {
    /// What is given.
    AsGiven,
    /// Nothing: the field is left to whoever compares.
    Apart,
    /// What is given, or else this text.
    OrText(&'static str),
    /// What is given, or else this JSON, which is no text.
    OrJson(&'static str),
    /// What is given, or else what another field of the struct holds.
    OrSameAs(&'static str),
    /// What is given, or else how often to pull the image that another field names.
    OrPullPolicyOf(&'static str),
    /// What is given, or else an empty struct if the struct holds but a name.
    OrEmptyIfAlone,
}

impl Compared {
    const fn or(json: &'static str) -> Self {
        let [b'"', text @ .., b'"'] = json.as_bytes() else { return Compared::OrJson(json) };
        match str::from_utf8(text) {
            Ok(text) => Compared::OrText(text),
            Err(_) => panic!("a text is UTF-8"),
        }
    }
}

macro_rules! structs {
    ($($name:ident: $($key:ident $when:tt $kind:tt $(= $compared:tt)?),+;)+) => {
        $(pub(super) const $name: &Struct = &Struct::of(&[
            $(Field {
                key: stringify!($key),
                opening: concat!(",\"", stringify!($key), "\":"),
                when: when!($when),
                kind: kind!($kind),
                compared: compared!($($compared)?),
            }),+
        ]);)+
    };
}

macro_rules! when {
    (?) => {
        When::NotZero
    };
    (*) => {
        When::Given
    };
    (!) => {
        When::Always
    };
    (&) => {
        When::AlwaysOrNull
    };
    (~) => {
        When::GivenOrLegacyNull
    };
}

macro_rules! kind {
    (text) => {
        FieldType::Text
    };
    (int) => {
        FieldType::Number
    };
    (flag) => {
        FieldType::Flag
    };
    (int_or_text) => {
        FieldType::IntOrText
    };
    (quantity) => {
        FieldType::Quantity
    };
    (time) => {
        FieldType::Time
    };
    (json) => {
        FieldType::Json
    };
    ([$item:tt]) => {
        FieldType::List(&kind!($item))
    };
    ({$item:tt}) => {
        FieldType::Map(&kind!($item))
    };
    ($name:ident) => {
        FieldType::Struct($name)
    };
}

macro_rules! compared {
    () => {
        Compared::AsGiven
    };
    (apart) => {
        Compared::Apart
    };
    ((same_as $key:ident)) => {
        Compared::OrSameAs(stringify!($key))
    };
    ((pull_policy_of $key:ident)) => {
        Compared::OrPullPolicyOf(stringify!($key))
    };
    (empty_if_alone) => {
        Compared::OrEmptyIfAlone
    };
    // Literals look the same in Rust and in JSON.
    ($json:tt) => {
        Compared::or(stringify!($json))
    };
}

structs! {
    PodTemplateSpec: metadata! ObjectMeta, spec! PodSpec;
    ObjectMeta: name? text, generateName? text, namespace? text, selfLink? text, uid? text,
        resourceVersion? text, generation? int, creationTimestamp~ time, deletionTimestamp* time,
        deletionGracePeriodSeconds* int, labels? {text}, annotations? {text},
        ownerReferences? [OwnerReference], finalizers? [text], managedFields? [ManagedFieldsEntry];
    // Of a template, whose labels and annotations are not all the user's.
    TemplateMeta: name? text, generateName? text, namespace? text, selfLink? text, uid? text,
        resourceVersion? text, generation? int, creationTimestamp~ time, deletionTimestamp* time,
        deletionGracePeriodSeconds* int, ownerReferences? [OwnerReference], finalizers? [text],
        managedFields? [ManagedFieldsEntry];
    OwnerReference: apiVersion! text, kind! text, name! text, uid! text, controller* flag,
        blockOwnerDeletion* flag;
    ManagedFieldsEntry: manager? text, operation? text, apiVersion? text, time* time,
        fieldsType? text, fieldsV1* json, subresource? text;
    PodSpec: volumes? [Volume], initContainers? [Container], containers! [Container],
        ephemeralContainers? [Container], restartPolicy? text = "Always",
        terminationGracePeriodSeconds* int = 30, activeDeadlineSeconds* int,
        dnsPolicy? text = "ClusterFirst", nodeSelector? {text},
        serviceAccountName? text = (same_as serviceAccount), serviceAccount? text = apart,
        automountServiceAccountToken* flag, nodeName? text, hostNetwork? flag, hostPID? flag,
        hostIPC? flag, shareProcessNamespace* flag, securityContext* PodSecurityContext = {},
        imagePullSecrets? [LocalObjectReference], hostname? text, subdomain? text,
        affinity* Affinity = apart, schedulerName? text = "default-scheduler",
        tolerations? [Toleration],
        hostAliases? [HostAlias], priorityClassName? text, priority* int, dnsConfig* PodDNSConfig,
        readinessGates? [PodReadinessGate], runtimeClassName* text, enableServiceLinks* flag,
        preemptionPolicy* text, overhead? {quantity},
        topologySpreadConstraints? [TopologySpreadConstraint], setHostnameAsFQDN* flag, os* PodOS,
        hostUsers* flag, schedulingGates? [PodSchedulingGate], resourceClaims? [PodResourceClaim],
        resources* ResourceRequirements, hostnameOverride* text;

    // The last field is of ephemeral containers alone; no API server keeps it in another.
    Container: name! text, image? text, command? [text], args? [text], workingDir? text,
        ports? [ContainerPort], envFrom? [EnvFromSource], env? [EnvVar],
        resources! ResourceRequirements, resizePolicy? [ContainerResizePolicy], restartPolicy* text,
        restartPolicyRules? [ContainerRestartRule], volumeMounts? [VolumeMount],
        volumeDevices? [VolumeDevice], livenessProbe* Probe, readinessProbe* Probe,
        startupProbe* Probe, lifecycle* Lifecycle,
        terminationMessagePath? text = "/dev/termination-log",
        terminationMessagePolicy? text = "File", imagePullPolicy? text = (pull_policy_of image),
        securityContext* SecurityContext, stdin? flag, stdinOnce? flag, tty? flag,
        targetContainerName? text;
    ContainerPort: name? text, hostPort? int, containerPort! int, protocol? text = "TCP",
        hostIP? text;
    ContainerResizePolicy: resourceName! text, restartPolicy! text;
    ContainerRestartRule: action? text, exitCodes* ContainerRestartRuleOnExitCodes;
    ContainerRestartRuleOnExitCodes: operator? text, values? [int];
    VolumeMount: name! text, readOnly? flag, recursiveReadOnly* text, mountPath! text,
        subPath? text, mountPropagation* text, subPathExpr? text;
    VolumeDevice: name! text, devicePath! text;
    ResourceRequirements: limits? {quantity}, requests? {quantity}, claims? [ResourceClaim];
    ResourceClaim: name! text, request? text;
    EnvFromSource: prefix? text, configMapRef* ConfigMapEnvSource, secretRef* SecretEnvSource;
    ConfigMapEnvSource: name? text, optional* flag;
    SecretEnvSource: name? text, optional* flag;
    EnvVar: name! text, value? text, valueFrom* EnvVarSource;
    EnvVarSource: fieldRef* ObjectFieldSelector, resourceFieldRef* ResourceFieldSelector,
        configMapKeyRef* ConfigMapKeySelector, secretKeyRef* SecretKeySelector,
        fileKeyRef* FileKeySelector;
    ObjectFieldSelector: apiVersion? text = "v1", fieldPath! text;
    ResourceFieldSelector: containerName? text, resource! text, divisor! quantity;
    ConfigMapKeySelector: name? text, key! text, optional* flag;
    SecretKeySelector: name? text, key! text, optional* flag;
    FileKeySelector: volumeName! text, path! text, key! text, optional* flag = false;
    LocalObjectReference: name? text;
    Probe: exec* ExecAction, httpGet* HTTPGetAction, tcpSocket* TCPSocketAction, grpc* GRPCAction,
        initialDelaySeconds? int, timeoutSeconds? int = 1, periodSeconds? int = 10,
        successThreshold? int = 1, failureThreshold? int = 3, terminationGracePeriodSeconds* int;
    Lifecycle: postStart* LifecycleHandler, preStop* LifecycleHandler, stopSignal* text;
    LifecycleHandler: exec* ExecAction, httpGet* HTTPGetAction, tcpSocket* TCPSocketAction,
        sleep* SleepAction;
    ExecAction: command? [text];
    HTTPGetAction: path? text = "/", port! int_or_text, host? text, scheme? text = "HTTP",
        httpHeaders? [HTTPHeader];
    HTTPHeader: name! text, value! text;
    TCPSocketAction: port! int_or_text, host? text;
    GRPCAction: port! int, service& text = "";
    SleepAction: seconds! int;

    PodSecurityContext: seLinuxOptions* SELinuxOptions,
        windowsOptions* WindowsSecurityContextOptions, runAsUser* int, runAsGroup* int,
        runAsNonRoot* flag, supplementalGroups? [int], supplementalGroupsPolicy* text, fsGroup* int,
        sysctls? [Sysctl], fsGroupChangePolicy* text, seccompProfile* SeccompProfile,
        appArmorProfile* AppArmorProfile, seLinuxChangePolicy* text;
    SecurityContext: capabilities* Capabilities, privileged* flag, seLinuxOptions* SELinuxOptions,
        windowsOptions* WindowsSecurityContextOptions, runAsUser* int, runAsGroup* int,
        runAsNonRoot* flag, readOnlyRootFilesystem* flag, allowPrivilegeEscalation* flag,
        procMount* text, seccompProfile* SeccompProfile, appArmorProfile* AppArmorProfile;
    Capabilities: add? [text], drop? [text];
    SELinuxOptions: user? text, role? text, type? text, level? text;
    WindowsSecurityContextOptions: gmsaCredentialSpecName* text, gmsaCredentialSpec* text,
        runAsUserName* text, hostProcess* flag;
    Sysctl: name! text, value! text;
    SeccompProfile: type! text, localhostProfile* text;
    AppArmorProfile: type! text, localhostProfile* text;

    Affinity: nodeAffinity* NodeAffinity, podAffinity* PodAffinity,
        podAntiAffinity* PodAntiAffinity;
    NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution* NodeSelector,
        preferredDuringSchedulingIgnoredDuringExecution? [PreferredSchedulingTerm];
    NodeSelector: nodeSelectorTerms! [NodeSelectorTerm];
    NodeSelectorTerm: matchExpressions? [NodeSelectorRequirement],
        matchFields? [NodeSelectorRequirement];
    NodeSelectorRequirement: key! text, operator! text, values? [text];
    PreferredSchedulingTerm: weight! int, preference! NodeSelectorTerm;
    PodAffinity: requiredDuringSchedulingIgnoredDuringExecution? [PodAffinityTerm],
        preferredDuringSchedulingIgnoredDuringExecution? [WeightedPodAffinityTerm];
    PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution? [PodAffinityTerm],
        preferredDuringSchedulingIgnoredDuringExecution? [WeightedPodAffinityTerm];
    PodAffinityTerm: labelSelector* LabelSelector, namespaces? [text], topologyKey! text,
        namespaceSelector* LabelSelector, matchLabelKeys? [text], mismatchLabelKeys? [text];
    WeightedPodAffinityTerm: weight! int, podAffinityTerm! PodAffinityTerm;
    LabelSelector: matchLabels? {text}, matchExpressions? [LabelSelectorRequirement];
    LabelSelectorRequirement: key! text, operator! text, values? [text];
    TopologySpreadConstraint: maxSkew! int, topologyKey! text, whenUnsatisfiable! text,
        labelSelector* LabelSelector, minDomains* int, nodeAffinityPolicy* text,
        nodeTaintsPolicy* text, matchLabelKeys? [text];
    Toleration: key? text, operator? text, value? text, effect? text, tolerationSeconds* int;
    HostAlias: ip! text, hostnames? [text];
    PodDNSConfig: nameservers? [text], searches? [text], options? [PodDNSConfigOption];
    PodDNSConfigOption: name? text, value* text;
    PodReadinessGate: conditionType! text;
    PodOS: name! text;
    PodSchedulingGate: name! text;
    PodResourceClaim: name! text, resourceClaimName* text, resourceClaimTemplateName* text;

    Volume: name! text, hostPath* HostPathVolumeSource,
        emptyDir* EmptyDirVolumeSource = empty_if_alone,
        gcePersistentDisk* GCEPersistentDiskVolumeSource,
        awsElasticBlockStore* AWSElasticBlockStoreVolumeSource, gitRepo* GitRepoVolumeSource,
        secret* SecretVolumeSource, nfs* NFSVolumeSource, iscsi* ISCSIVolumeSource,
        glusterfs* GlusterfsVolumeSource, persistentVolumeClaim* PersistentVolumeClaimVolumeSource,
        rbd* RBDVolumeSource, flexVolume* FlexVolumeSource, cinder* CinderVolumeSource,
        cephfs* CephFSVolumeSource, flocker* FlockerVolumeSource,
        downwardAPI* DownwardAPIVolumeSource, fc* FCVolumeSource, azureFile* AzureFileVolumeSource,
        configMap* ConfigMapVolumeSource, vsphereVolume* VsphereVirtualDiskVolumeSource,
        quobyte* QuobyteVolumeSource, azureDisk* AzureDiskVolumeSource,
        photonPersistentDisk* PhotonPersistentDiskVolumeSource, projected* ProjectedVolumeSource,
        portworxVolume* PortworxVolumeSource, scaleIO* ScaleIOVolumeSource,
        storageos* StorageOSVolumeSource, csi* CSIVolumeSource, ephemeral* EphemeralVolumeSource,
        image* ImageVolumeSource;
    HostPathVolumeSource: path! text, type* text = "";
    EmptyDirVolumeSource: medium? text, sizeLimit* quantity;
    GCEPersistentDiskVolumeSource: pdName! text, fsType? text, partition? int, readOnly? flag;
    AWSElasticBlockStoreVolumeSource: volumeID! text, fsType? text, partition? int, readOnly? flag;
    GitRepoVolumeSource: repository! text, revision? text, directory? text;
    SecretVolumeSource: secretName? text, items? [KeyToPath], defaultMode* int = 420,
        optional* flag;
    KeyToPath: key! text, path! text, mode* int;
    NFSVolumeSource: server! text, path! text, readOnly? flag;
    ISCSIVolumeSource: targetPortal! text, iqn! text, lun! int, iscsiInterface? text = "default",
        fsType? text, readOnly? flag, portals? [text], chapAuthDiscovery? flag,
        chapAuthSession? flag, secretRef* LocalObjectReference, initiatorName* text;
    GlusterfsVolumeSource: endpoints! text, path! text, readOnly? flag;
    PersistentVolumeClaimVolumeSource: claimName! text, readOnly? flag;
    RBDVolumeSource: monitors! [text], image! text, fsType? text, pool? text = "rbd",
        user? text = "admin", keyring? text = "/etc/ceph/keyring", secretRef* LocalObjectReference,
        readOnly? flag;
    FlexVolumeSource: driver! text, fsType? text, secretRef* LocalObjectReference, readOnly? flag,
        options? {text};
    CinderVolumeSource: volumeID! text, fsType? text, readOnly? flag,
        secretRef* LocalObjectReference;
    CephFSVolumeSource: monitors! [text], path? text, user? text, secretFile? text,
        secretRef* LocalObjectReference, readOnly? flag;
    FlockerVolumeSource: datasetName? text, datasetUUID? text;
    DownwardAPIVolumeSource: items? [DownwardAPIVolumeFile], defaultMode* int = 420;
    DownwardAPIVolumeFile: path! text, fieldRef* ObjectFieldSelector,
        resourceFieldRef* ResourceFieldSelector, mode* int;
    FCVolumeSource: targetWWNs? [text], lun* int, fsType? text, readOnly? flag, wwids? [text];
    AzureFileVolumeSource: secretName! text, shareName! text, readOnly? flag;
    ConfigMapVolumeSource: name? text, items? [KeyToPath], defaultMode* int = 420, optional* flag;
    VsphereVirtualDiskVolumeSource: volumePath! text, fsType? text, storagePolicyName? text,
        storagePolicyID? text;
    QuobyteVolumeSource: registry! text, volume! text, readOnly? flag, user? text, group? text,
        tenant? text;
    AzureDiskVolumeSource: diskName! text, diskURI! text, cachingMode* text = "ReadWrite",
        fsType* text = "ext4", readOnly* flag = false, kind* text = "Shared";
    PhotonPersistentDiskVolumeSource: pdID! text, fsType? text;
    ProjectedVolumeSource: sources! [VolumeProjection], defaultMode* int = 420;
    VolumeProjection: secret* SecretProjection, downwardAPI* DownwardAPIProjection,
        configMap* ConfigMapProjection, serviceAccountToken* ServiceAccountTokenProjection,
        clusterTrustBundle* ClusterTrustBundleProjection, podCertificate* PodCertificateProjection;
    SecretProjection: name? text, items? [KeyToPath], optional* flag;
    DownwardAPIProjection: items? [DownwardAPIVolumeFile];
    ConfigMapProjection: name? text, items? [KeyToPath], optional* flag;
    ServiceAccountTokenProjection: audience? text, expirationSeconds* int = 3600, path! text;
    ClusterTrustBundleProjection: name* text, signerName* text, labelSelector* LabelSelector,
        optional* flag, path! text;
    PodCertificateProjection: signerName? text, keyType? text, maxExpirationSeconds* int,
        credentialBundlePath? text, keyPath? text, certificateChainPath? text;
    PortworxVolumeSource: volumeID! text, fsType? text, readOnly? flag;
    ScaleIOVolumeSource: gateway! text, system! text, secretRef& LocalObjectReference,
        sslEnabled? flag, protectionDomain? text, storagePool? text,
        storageMode? text = "ThinProvisioned", volumeName? text, fsType? text = "xfs",
        readOnly? flag;
    StorageOSVolumeSource: volumeName? text, volumeNamespace? text, fsType? text, readOnly? flag,
        secretRef* LocalObjectReference;
    CSIVolumeSource: driver! text, readOnly* flag, fsType* text, volumeAttributes? {text},
        nodePublishSecretRef* LocalObjectReference;
    EphemeralVolumeSource: volumeClaimTemplate* PersistentVolumeClaimTemplate;
    PersistentVolumeClaimTemplate: metadata! ObjectMeta, spec! PersistentVolumeClaimSpec;
    PersistentVolumeClaimSpec: accessModes? [text], selector* LabelSelector,
        resources! VolumeResourceRequirements, volumeName? text, storageClassName* text,
        volumeMode* text = "Filesystem", dataSource* TypedLocalObjectReference,
        dataSourceRef* TypedObjectReference, volumeAttributesClassName* text;
    VolumeResourceRequirements: limits? {quantity}, requests? {quantity};
    TypedLocalObjectReference: apiGroup& text, kind! text, name! text;
    TypedObjectReference: apiGroup& text, kind! text, name! text, namespace* text;
    // Servers disagree about the default here: filled in from Kubernetes 1.35 on.
    ImageVolumeSource: reference? text, pullPolicy? text = (pull_policy_of reference);
}

// Canary steps, as Argo Rollouts 1.9 and later write them, and below what older releases wrote:
// 1.7 and 1.8, then 1.6, then 1.5 and before.
structs! {
    CanaryStep: setWeight* int, pause* Pause, experiment* ExperimentStep, analysis* AnalysisStep,
        setCanaryScale* SetCanaryScale, setHeaderRoute* SetHeaderRoute,
        setMirrorRoute* SetMirrorRoute, plugin* PluginStep;
    Pause: duration* int_or_text;
    ExperimentStep: templates! [ExperimentTemplate], duration? text, analyses? [ExperimentAnalysis],
        dryRun? [DryRun], analysisRunMetadata! PodMetadata, scaleDownDelaySeconds* int;
    ExperimentTemplate: name! text, specRef! text, replicas* int, metadata! PodMetadata,
        selector* LabelSelector, weight* int, service* TemplateService;
    TemplateService: name? text;
    ExperimentAnalysis: name! text, templateName! text, clusterScope* flag, args? [Argument],
        requiredForCompletion? flag;
    AnalysisStep: templates? [AnalysisTemplateRef], args? [Argument], dryRun? [DryRun],
        measurementRetention? [MeasurementRetention], analysisRunMetadata* PodMetadata;
    AnalysisTemplateRef: templateName! text, clusterScope* flag;
    Argument: name! text, value? text, valueFrom* ArgumentValueFrom;
    ArgumentValueFrom: podTemplateHashValue* text, fieldRef* FieldRef;
    FieldRef: fieldPath! text;
    DryRun: metricName! text;
    MeasurementRetention: metricName! text, limit! int;
    PodMetadata: labels? {text}, annotations? {text};
    SetCanaryScale: weight* int, replicas* int, matchTrafficWeight? flag;
    SetHeaderRoute: name? text, match? [HeaderMatch];
    HeaderMatch: headerName! text, headerValue& StringMatch;
    StringMatch: exact? text, prefix? text, regex? text;
    SetMirrorRoute: name! text, match? [RouteMatch], percentage* int;
    RouteMatch: method* StringMatch, path* StringMatch, headers? {StringMatch};
    PluginStep: name! text, config* json;

    CanaryStepOf17: setWeight* int, pause* Pause, experiment* ExperimentStepOf17,
        analysis* AnalysisStepOf16, setCanaryScale* SetCanaryScale, setHeaderRoute* SetHeaderRoute,
        setMirrorRoute* SetMirrorRoute, plugin* PluginStep;
    CanaryStepOf16: setWeight* int, pause* Pause, experiment* ExperimentStepOf15,
        analysis* AnalysisStepOf16, setCanaryScale* SetCanaryScale, setHeaderRoute* SetHeaderRoute,
        setMirrorRoute* SetMirrorRoute;
    CanaryStepOf15: setWeight* int, pause* Pause, experiment* ExperimentStepOf15,
        analysis* AnalysisStepOf15, setCanaryScale* SetCanaryScale, setHeaderRoute* SetHeaderRoute,
        setMirrorRoute* SetMirrorRoute;
    ExperimentStepOf17: templates! [ExperimentTemplate], duration? text,
        analyses? [ExperimentAnalysisOf17], dryRun? [DryRun], analysisRunMetadata! PodMetadata,
        scaleDownDelaySeconds* int;
    ExperimentStepOf15: templates! [ExperimentTemplate], duration? text,
        analyses? [ExperimentAnalysisOf17], scaleDownDelaySeconds* int;
    ExperimentAnalysisOf17: name! text, templateName! text, clusterScope? flag, args? [Argument],
        requiredForCompletion? flag;
    AnalysisStepOf16: templates? [AnalysisTemplateRefOf17], args? [Argument], dryRun? [DryRun],
        measurementRetention? [MeasurementRetention], analysisRunMetadata! PodMetadata;
    AnalysisStepOf15: templates? [AnalysisTemplateRefOf17], args? [Argument], dryRun? [DryRun],
        measurementRetention? [MeasurementRetention];
    AnalysisTemplateRefOf17: templateName! text, clusterScope? flag;
}

// How Kubernetes shows a volume that an attachment describes itself.
import type { JsonObject } from "../../../json.js";
import { type GoPart, type GoStruct, REFERENCE, goForm } from "../kept-rules.js";

const pointer = (struct: GoStruct): GoPart => ({ kind: "pointer", struct });
const SECRET = pointer({ Name: "", Namespace: "" });
const DISK: GoStruct = { VolumeID: "", FSType: "", Partition: 0, ReadOnly: false };

const SOURCES: GoStruct = {
  GCEPersistentDisk: pointer({ PDName: "", FSType: "", Partition: 0, ReadOnly: false }),
  AWSElasticBlockStore: pointer(DISK),
  HostPath: pointer({ Path: "", Type: null }),
  Glusterfs: pointer({ EndpointsName: "", Path: "", ReadOnly: false, EndpointsNamespace: null }),
  NFS: pointer({ Server: "", Path: "", ReadOnly: false }),
  RBD: pointer({
    ...{ CephMonitors: [], RBDImage: "", FSType: "", RBDPool: "", RadosUser: "", Keyring: "" },
    ...{ SecretRef: SECRET, ReadOnly: false },
  }),
  Quobyte: pointer({ Registry: "", Volume: "", ReadOnly: false, User: "", Group: "", Tenant: "" }),
  ISCSI: pointer({
    ...{ TargetPortal: "", IQN: "", Lun: 0, ISCSIInterface: "", FSType: "", ReadOnly: false, Portals: [] },
    ...{ DiscoveryCHAPAuth: false, SessionCHAPAuth: false, SecretRef: SECRET, InitiatorName: null },
  }),
  FlexVolume: pointer({ Driver: "", FSType: "", SecretRef: SECRET, ReadOnly: false, Options: null }),
  Cinder: pointer({ VolumeID: "", FSType: "", ReadOnly: false, SecretRef: SECRET }),
  CephFS: pointer({ Monitors: [], Path: "", User: "", SecretFile: "", SecretRef: SECRET, ReadOnly: false }),
  FC: pointer({ TargetWWNs: [], Lun: null, FSType: "", ReadOnly: false, WWIDs: [] }),
  Flocker: pointer({ DatasetName: "", DatasetUUID: "" }),
  AzureFile: pointer({ SecretName: "", ShareName: "", ReadOnly: false, SecretNamespace: null }),
  VsphereVolume: pointer({ VolumePath: "", FSType: "", StoragePolicyName: "", StoragePolicyID: "" }),
  AzureDisk: pointer({ DiskName: "", DataDiskURI: "", CachingMode: null, FSType: null, ReadOnly: null, Kind: null }),
  PhotonPersistentDisk: pointer({ PdID: "", FSType: "" }),
  PortworxVolume: pointer({ VolumeID: "", FSType: "", ReadOnly: false }),
  ScaleIO: pointer({
    ...{ Gateway: "", System: "", SecretRef: SECRET, SSLEnabled: false, ProtectionDomain: "", StoragePool: "" },
    ...{ StorageMode: "", VolumeName: "", FSType: "", ReadOnly: false },
  }),
  Local: pointer({ Path: "", FSType: null }),
  StorageOS: pointer({
    ...{ VolumeName: "", VolumeNamespace: "", FSType: "", ReadOnly: false },
    SecretRef: pointer(REFERENCE),
  }),
  CSI: pointer({
    ...{ Driver: "", VolumeHandle: "", ReadOnly: false, FSType: "", VolumeAttributes: null },
    ...{ ControllerPublishSecretRef: SECRET, NodeStageSecretRef: SECRET, NodePublishSecretRef: SECRET },
    ...{ ControllerExpandSecretRef: SECRET, NodeExpandSecretRef: SECRET },
  }),
};
const REQUIREMENTS: GoPart = { kind: "list", struct: { Key: "", Operator: "", Values: [] } };
const SPEC: GoStruct = {
  Attacher: "",
  Source: {
    kind: "always",
    struct: {
      PersistentVolumeName: null,
      InlineVolumeSpec: pointer({
        Capacity: null,
        ...SOURCES,
        ...{ AccessModes: [], ClaimRef: pointer(REFERENCE), PersistentVolumeReclaimPolicy: "", StorageClassName: "" },
        ...{ MountOptions: [], VolumeMode: null },
        NodeAffinity: pointer({
          Required: pointer({
            NodeSelectorTerms: {
              kind: "list",
              struct: { MatchExpressions: REQUIREMENTS, MatchFields: REQUIREMENTS },
            },
          }),
        }),
        VolumeAttributesClassName: null,
      }),
    },
  },
  NodeName: "",
};

/** Shows the spec of a VolumeAttachment. */
export function goAttachment(spec: JsonObject | undefined): JsonObject {
  return goForm(SPEC, spec);
}

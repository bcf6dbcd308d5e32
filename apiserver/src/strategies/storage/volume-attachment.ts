import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkDomain } from "../../validation/fields.js";
import { type GoPart, type GoStruct, REFERENCE, checkKept, goForm } from "../../validation/immutable-fields.js";
import { checkModes } from "../core/persistent-volume.js";
import { entriesOf } from "../core/persistent-volume-claim.js";
import { checkDriverName } from "../shared/driver-names.js";
import { checkSources } from "../shared/volume-sources.js";
import type { Strategy } from "../strategy.js";

export const volumeAttachmentStrategy: Strategy = {
  checksMetadata: ["object"],
  allowsUnconditionalUpdate: false,
  returnsDeletedObject: true,
  resetOnStatus: [".metadata", ".spec"],
  validate: checkVolumeAttachment,
  validateStatus: checkAttachmentStatus,
};

const INLINE = "in the context of inline volumes";

/** Validates a VolumeAttachment; its spec is immutable. */
function checkVolumeAttachment(attachment: JsonObject, old: JsonObject | undefined): FieldError[] {
  const shown = (one: JsonObject) => goAttachment(objectAt(one, "spec"));
  return [
    ...checkNewAttachment(attachment),
    ...(old === undefined ? [] : checkKept("spec", shown(attachment), shown(old))),
  ];
}

function checkNewAttachment(attachment: JsonObject): FieldError[] {
  const spec = objectAt(attachment, "spec") ?? {};
  const source = objectAt(spec, "source");
  const [inline, name] = [objectAt(source, "inlineVolumeSpec"), memberOf(source, "persistentVolumeName") ?? null];
  const detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const field = "spec.source.persistentVolumeName";
  return [
    ...checkDriverName("spec.attacher", textAt(spec, "attacher")),
    ...(inline === undefined && name === null ? [requiredError("spec.source", detail)] : []),
    ...(inline !== undefined && name !== null ? [forbiddenError("spec.source", detail)] : []),
    ...(inline === undefined && name === ""
      ? [requiredError(field, "must specify non empty persistentVolumeName")]
      : []),
    ...(inline !== undefined && name === null ? checkInline("spec.source.inlineVolumeSpec", inline) : []),
    ...checkDomain("spec.nodeName", textAt(spec, "nodeName")),
    ...(name === null ? [] : checkDomain(field, String(name))),
  ];
}

function checkInline(path: string, spec: JsonObject): FieldError[] {
  const elsewhere = (key: string) => forbiddenError(`${path}.${key}`, `may not be specified ${INLINE}`);
  const has = (key: string) => objectAt(spec, key) !== undefined;
  const [policy, mode] = [textAt(spec, "persistentVolumeReclaimPolicy"), textAt(spec, "volumeMode")];
  return [
    ...(has("claimRef") ? [elsewhere("claimRef")] : []),
    ...(Object.keys(objectAt(spec, "capacity") ?? {}).length > 0 ? [elsewhere("capacity")] : []),
    ...(has("csi") ? [] : [requiredError(`${path}.csi`, `has to be specified ${INLINE}`)]),
    ...checkModes(path, spec),
    ...(policy === "" || policy === "Retain"
      ? []
      : [forbiddenError(`${path}.persistentVolumeReclaimPolicy`, `may only be Retain ${INLINE}`)]),
    ...(has("nodeAffinity") ? [elsewhere("nodeAffinity")] : []),
    ...checkSources(path, spec),
    ...(textAt(spec, "storageClassName") === "" ? [] : [elsewhere("storageClassName")]),
    ...(mode === "" || mode === "Filesystem"
      ? []
      : [forbiddenError(`${path}.volumeMode`, `may not specify volumeMode other than Filesystem ${INLINE}`)]),
  ];
}

// Formats inline volumes as Go does in error messages.

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

/** Formats the spec of a VolumeAttachment. */
function goAttachment(spec: JsonObject | undefined): JsonObject {
  return goForm(SPEC, spec);
}

const MAX_METADATA_BYTES = 256 * 1024;
const MAX_MESSAGE_BYTES = 1024;

/** Validates the status of a VolumeAttachment. */
function checkAttachmentStatus(attachment: JsonObject): FieldError[] {
  const status = objectAt(attachment, "status");
  const metadata = entriesOf(status, "attachmentMetadata");
  const bytes = metadata.reduce((sum, [key, value]) => sum + Buffer.byteLength(key + String(value)), 0);
  return [
    ...(bytes > MAX_METADATA_BYTES ? [tooLongError("status.attachmentMetadata", MAX_METADATA_BYTES)] : []),
    ...["attachError", "detachError"].flatMap((key) => checkVolumeError(`status.${key}`, objectAt(status, key) ?? {})),
  ];
}

function checkVolumeError(path: string, error: JsonObject): FieldError[] {
  const code = memberOf(error, "errorCode");
  const isTooLong = Buffer.byteLength(textAt(error, "message")) > MAX_MESSAGE_BYTES;
  return [
    // The message of kube-apiserver contains this limit instead of the actual one.
    ...(isTooLong ? [tooLongError(`${path}.message`, MAX_METADATA_BYTES)] : []),
    ...(typeof code === "number" && code < 0
      ? [invalidError(`${path}.errorCode`, code, "must be between 0 and 2147483647, inclusive")]
      : []),
  ];
}

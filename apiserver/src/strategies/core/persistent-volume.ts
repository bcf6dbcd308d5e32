// Volumes, and those that an attachment describes itself.
import { compareQuantities } from "@gen-operator/schema";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, compareText, deepEqual, memberOf, objectAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { textAt } from "../../builtin/read-path.js";
import { checkDomain, checkGivenDomain, checkOneOf } from "../../validation/fields.js";
import { type GoPart, type GoStruct, REFERENCE, checkKept, goForm } from "../../validation/immutable-fields.js";
import { checkDriverName } from "../shared/driver-names.js";
import { checkNodeSelector } from "../shared/node-selectors.js";
import { VOLUME_SOURCES, checkSources } from "../shared/volume-sources.js";

const MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const INLINE = "in the context of inline volumes";

/** Checks a PersistentVolume. What it is made of stays, but for a secret that it may be given once. */
export function checkVolume(volume: JsonObject, old: JsonObject | undefined): FieldError[] {
  const own = checkNewVolume(volume);
  const ofMounts = checkMountOptions(volume);
  if (old === undefined) return [...own, ...ofMounts];
  // Kubernetes checks an update twice and lists it twice.
  return [...own, ...ofMounts, ...own, ...checkVolumeKept(objectAt(volume, "spec") ?? {}, objectAt(old, "spec") ?? {})];
}

const SOURCE_RULE = "spec.persistentvolumesource is immutable after creation";
const EXPAND_SECRET = "controllerExpandSecretRef";

function checkVolumeKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const sources = (one: JsonObject) => VOLUME_SOURCES.map((source) => objectAt(one, source) ?? null);
  const [csi, oldCsi] = [objectAt(spec, "csi"), objectAt(old, "csi")];
  const mayHaveSecret = csi !== undefined && oldCsi !== undefined && memberOf(oldCsi, EXPAND_SECRET) === undefined;
  const { [EXPAND_SECRET]: _, ...withoutSecret } = csi ?? {};
  const given = mayHaveSecret ? { ...spec, csi: withoutSecret } : spec;
  const mode = (one: JsonObject) => memberOf(one, "volumeMode") ?? null;
  const className = (one: JsonObject) => memberOf(one, "volumeAttributesClassName") ?? null;
  const isUnset = className(old) !== null && className(spec) === null;
  return [
    ...(deepEqual(sources(given), sources(old)) ? [] : [forbiddenError("spec.persistentvolumesource", SOURCE_RULE)]),
    ...checkKept("volumeMode", mode(spec), mode(old)),
    ...(isUnset
      ? [forbiddenError("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")]
      : []),
  ];
}

const MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options";
/** What is mounted with options that an annotation may tell. */
const MOUNTED = [
  ...["gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs"],
  ...["azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"],
];

function checkMountOptions(volume: JsonObject): FieldError[] {
  const annotations = objectAt(objectAt(volume, "metadata"), "annotations");
  const isMounted = MOUNTED.some((source) => objectAt(objectAt(volume, "spec"), source) !== undefined);
  if (isMounted || memberOf(annotations, MOUNT_OPTIONS) === undefined) return [];
  const field = `metadata.annotations.${MOUNT_OPTIONS}`;
  return [forbiddenError(field, "may not specify mount options for this volume type")];
}

function checkNewVolume(volume: JsonObject): FieldError[] {
  const spec = objectAt(volume, "spec") ?? {};
  const affinity = objectAt(spec, "nodeAffinity");
  const required = objectAt(affinity, "required");
  const policy = memberOf(spec, "persistentVolumeReclaimPolicy");
  const isRoot = /^\/[/.]*$/.test(textAt(spec, "hostPath.path"));
  return [
    ...checkModes("spec", spec),
    ...checkCapacity(spec),
    ...(policy === "" ? [] : checkOneOf("spec.persistentVolumeReclaimPolicy", policy, ["Delete", "Recycle", "Retain"])),
    ...(affinity !== undefined && required === undefined
      ? [requiredError("spec.nodeAffinity.required", "must specify required node constraints")]
      : []),
    ...(required === undefined ? [] : checkNodeSelector("spec.nodeAffinity.required", required)),
    ...checkSources("spec", spec),
    ...(isRoot && policy === "Recycle"
      ? [forbiddenError("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")]
      : []),
    ...checkGivenDomain("spec.storageClassName", textAt(spec, "storageClassName")),
    ...checkOneOf("spec.volumeMode", memberOf(spec, "volumeMode"), ["Block", "Filesystem"]),
    ...checkAttributes("spec", spec),
  ];
}

function checkModes(path: string, spec: JsonObject): FieldError[] {
  const field = `${path}.accessModes`;
  const modes = arrayAt(spec, "accessModes") ?? [];
  const isShared = modes.includes("ReadWriteOncePod") && modes.some((mode) => MODES.slice(0, 3).includes(String(mode)));
  return [
    ...(modes.length === 0 ? [requiredError(field)] : []),
    ...modes.flatMap((mode) => checkOneOf(field, mode, MODES)),
    ...(isShared ? [forbiddenError(field, "may not use ReadWriteOncePod with other access modes")] : []),
  ];
}

function checkCapacity(spec: JsonObject): FieldError[] {
  const capacity = objectAt(spec, "capacity") ?? {};
  const names = Object.keys(capacity).sort(compareText);
  const isSized = names.length === 1 && names[0] === "storage";
  const none = wasGivenEmpty(spec, "capacity") ? {} : null;
  const shown = names.length === 0 ? none : Object.fromEntries(names.map((name) => [name, capacity[name] ?? null]));
  return [
    ...(names.length === 0 ? [requiredError("spec.capacity")] : []),
    ...(isSized ? [] : [notSupportedError("spec.capacity", shown, ["storage"])]),
    ...names.flatMap((name) => {
      const size = String(capacity[name]);
      const [sign, field] = [compareQuantities(size, "0") ?? 1, `spec.capacity[${name}]`];
      return [
        ...(sign < 0 ? [invalidError(field, Number(size), "must be a valid resource quantity")] : []),
        ...(sign <= 0 ? [invalidError(field, size, "must be greater than zero")] : []),
      ];
    }),
  ];
}

function checkAttributes(path: string, spec: JsonObject): FieldError[] {
  const name = memberOf(spec, "volumeAttributesClassName") ?? null;
  const field = `${path}.volumeAttributesClassName`;
  if (name === null) return [];
  return [
    ...(name === "" ? [requiredError(field, "an empty string is disallowed")] : checkDomain(field, String(name))),
    ...(objectAt(spec, "csi") === undefined
      ? [requiredError(`${path}.csi`, "has to be specified when using volumeAttributesClassName")]
      : []),
  ];
}

/** Checks a VolumeAttachment, whose spec stays. */
export function checkVolumeAttachment(attachment: JsonObject, old: JsonObject | undefined): FieldError[] {
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

// How Kubernetes shows a volume that an attachment describes itself.

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
function goAttachment(spec: JsonObject | undefined): JsonObject {
  return goForm(SPEC, spec);
}

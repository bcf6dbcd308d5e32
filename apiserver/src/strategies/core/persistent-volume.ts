import { compareQuantities } from "@gen-operator/schema";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, compareText, deepEqual, memberOf, objectAt } from "../../json.js";
import { now } from "../../object/object-meta.js";
import { checkDomain, checkGivenDomain, checkOneOf } from "../../validation/fields.js";
import { checkKept } from "../../validation/immutable-fields.js";
import { checkNodeSelector, termWarnings } from "../shared/node-selectors.js";
import { DEPRECATED_IN_VOLUMES, VOLUME_SOURCES, checkSources, sourceWarnings } from "../shared/volume-sources.js";
import type { Strategy } from "../strategy.js";
import { CLASS_ANNOTATION, annotationWarnings, protectByFinalizer } from "./persistent-volume-claim.js";

export const persistentVolumeStrategy: Strategy = {
  returnsDeletedObject: true,
  checksMetadata: ["object", "object"],
  defaults(volume, { uid }) {
    if (uid !== undefined) protectByFinalizer(volume, "kubernetes.io/pv-protection");
    const spec = objectAt(volume, "spec") ?? {};
    spec["persistentVolumeReclaimPolicy"] ??= "Retain";
    spec["volumeMode"] ??= "Filesystem";
  },
  prepareForCreate: (volume) => stampPhase(volume, undefined),
  prepareForUpdate: stampPhase,
  validate: checkVolume,
  warnings: volumeWarnings,
};

// Sets the time of a phase transition, unless the client sets it.
function stampPhase(volume: JsonObject, live: JsonObject | undefined): void {
  const [status, before] = [objectAt(volume, "status") ?? {}, objectAt(live, "status")];
  const [time, oldTime] = [status["lastPhaseTransitionTime"], before?.["lastPhaseTransitionTime"]];
  const isSamePhase = (status["phase"] ?? "") === (before?.["phase"] ?? "");
  if (time !== undefined && (isSamePhase || time !== oldTime)) return;
  const own = isSamePhase ? oldTime : now();
  if (own !== undefined) volume["status"] = { ...status, lastPhaseTransitionTime: own };
}

const MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/** Validates a PersistentVolume. Its source is immutable, except for a secret that can be set once. */
function checkVolume(volume: JsonObject, old: JsonObject | undefined): FieldError[] {
  const own = checkNewVolume(volume);
  const ofMounts = checkMountOptions(volume);
  if (old === undefined) return [...own, ...ofMounts];
  // kube-apiserver validates an update twice and reports its errors twice.
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

/** Volume types that support mount options in the legacy annotation. */
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

export function checkModes(path: string, spec: JsonObject): FieldError[] {
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

/** Returns the warnings for a PersistentVolume. */
function volumeWarnings(volume: JsonObject): string[] {
  const recycles = textAt(volume, "spec.persistentVolumeReclaimPolicy") === "Recycle";
  const advice =
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
  const affinity = objectAt(objectAt(volume, "spec"), "nodeAffinity");
  return [
    ...annotationWarnings(volume, [
      [CLASS_ANNOTATION, "v1.8", "storageClassName"],
      [MOUNT_OPTIONS, "v1.31", "mountOptions"],
    ]),
    ...(recycles ? [`spec.persistentVolumeReclaimPolicy: ${advice}`] : []),
    ...termWarnings("spec.nodeAffinity.required", objectAt(affinity, "required")),
    ...sourceWarnings("spec", objectAt(volume, "spec") ?? {}, DEPRECATED_IN_VOLUMES),
  ];
}

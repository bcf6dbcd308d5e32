// Volumes of Pods and Pod templates.
import { compareQuantities } from "@gen-operator/schema";
import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, isObject, memberOf, objectAt } from "../../json.js";
import { checkGivenDomain, checkLabelName, checkOneOf, checkRequired } from "../../validation/fields.js";
import { subdomainProblems } from "../../validation/names.js";
import { checkClaimSpec } from "../core/persistent-volume-claim.js";
import { checkDriverName } from "../shared/driver-names.js";
import { checkTemplateMetadata } from "../shared/template-metadata.js";
import { SHARED_SOURCES, type SourceRule, checkIscsi, checkOneSource, needs } from "../shared/volume-sources.js";
import { checkDownward, checkFiles, checkProjected, checkRelative } from "./projected-volumes.js";

/** The Pod of the volumes under validation. */
export interface PodOfVolumes {
  /** False for a Pod template. */
  readonly isPod: boolean;
  /** "" if it has none yet. */
  readonly name: string;
}

const MAX_PORTAL = 64;
const UNKNOWN_INITIATOR = "must be valid format starting with iqn, eui, or naa";

/** Validates volumes at `path`, and returns the valid ones, which can be mounted. The name of an invalid volume is not reserved. */
export function checkVolumes(
  path: string,
  volumes: JsonObject[],
  pod: PodOfVolumes,
): { errors: FieldError[]; usable: JsonObject[] } {
  const rules = sourcesOf(pod);
  const usable = new Map<unknown, JsonObject>();
  const created = volumes
    .filter((volume) => objectAt(volume, "ephemeral") !== undefined)
    .map((volume) => claimOf(pod, volume));
  const errors = volumes.flatMap((volume, index) => {
    const [at, name] = [`${path}[${index}]`, memberOf(volume, "name")];
    const ofVolume = [
      ...checkOneSource(at, volume, { rules }),
      ...checkNameOf(at, volume, pod),
      ...checkLabelName(`${at}.name`, name),
      ...(name !== undefined && usable.has(name) ? [duplicateError(`${at}.name`, name)] : []),
    ];
    if (ofVolume.length === 0) usable.set(name, volume);
    return [...ofVolume, ...checkNotCreated(`${at}.persistentVolumeClaim.claimName`, volume, created)];
  });
  return { errors, usable: [...usable.values()] };
}

// In the order in which kube-apiserver checks them.
function sourcesOf({ isPod }: PodOfVolumes): Record<string, SourceRule> {
  const shared = (...keys: string[]) => Object.fromEntries(keys.map((key) => [key, SHARED_SOURCES[key] as SourceRule]));
  return {
    emptyDir: checkEmptyDir,
    ...shared("hostPath"),
    gitRepo: checkRepository,
    ...shared("gcePersistentDisk", "awsElasticBlockStore"),
    secret: (path, source) => [...needs("secretName")(path, source), ...checkFiles(path, source)],
    ...shared("nfs"),
    iscsi: (path, source) => checkIscsi(path, source, UNKNOWN_INITIATOR),
    ...shared("glusterfs", "flocker"),
    persistentVolumeClaim: needs("claimName"),
    ...shared("rbd", "cinder", "cephfs", "quobyte"),
    downwardAPI: checkDownward,
    ...shared("fc", "flexVolume"),
    configMap: (path, source) => [...needs("name")(path, source), ...checkFiles(path, source)],
    ...shared("azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos"),
    projected: checkProjected,
    ...shared("scaleIO"),
    csi: checkInlineDriver,
    ephemeral: checkClaimTemplate,
    image: (path, source) => [
      ...(isPod ? checkRequired(`${path}.reference`, memberOf(source, "reference")) : []),
      ...checkOneOf(`${path}.pullPolicy`, memberOf(source, "pullPolicy"), ["Always", "IfNotPresent", "Never"]),
    ],
  };
}

function checkEmptyDir(path: string, source: JsonObject): FieldError[] {
  const limit = memberOf(source, "sizeLimit");
  const isNegative = limit !== undefined && (compareQuantities(String(limit), "0") ?? 0) < 0;
  return isNegative ? [forbiddenError(`${path}.sizeLimit`, "SizeLimit field must be a valid resource quantity")] : [];
}

function checkRepository(path: string, source: JsonObject): FieldError[] {
  return [...needs("repository")(path, source), ...checkRelative(`${path}.directory`, textAt(source, "directory"))];
}

function checkInlineDriver(path: string, source: JsonObject): FieldError[] {
  const secret = objectAt(source, "nodePublishSecretRef");
  const name = textAt(secret ?? {}, "name");
  return [
    ...checkDriverName(`${path}.driver`, textAt(source, "driver")),
    ...(secret === undefined ? [] : checkRequired(`${path}.nodePublishSecretRef.name`, name)),
    ...checkGivenDomain(`${path}.name`, name),
  ];
}

function checkClaimTemplate(path: string, source: JsonObject): FieldError[] {
  const [field, template] = [`${path}.volumeClaimTemplate`, objectAt(source, "volumeClaimTemplate")];
  if (template === undefined) return [requiredError(field)];
  return [
    ...checkTemplateMetadata(`${field}.metadata`, objectAt(template, "metadata") ?? {}),
    ...checkClaimSpec(`${field}.spec`, objectAt(template, "spec") ?? {}),
  ];
}

function claimOf({ name }: PodOfVolumes, volume: JsonObject): string {
  return name === "" ? "" : `${name}-${textAt(volume, "name")}`;
}

// The names of generated claims and iSCSI initiators contain the name of the volume.
function checkNameOf(at: string, volume: JsonObject, pod: PodOfVolumes): FieldError[] {
  const [name, field] = [textAt(volume, "name"), `${at}.name`];
  const claim = claimOf(pod, volume);
  const isFirst = Object.keys(sourcesOf(pod)).find((key) => isObject(volume[key])) === "ephemeral";
  const portal = `${name}:${textAt(volume, "iscsi.targetPortal")}`;
  const hasInitiator = memberOf(objectAt(volume, "iscsi"), "initiatorName") !== undefined;
  const detail =
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
  return [
    ...(hasInitiator && Buffer.byteLength(portal) > MAX_PORTAL ? [invalidError(field, name, detail)] : []),
    ...(isFirst && claim !== "" && name !== ""
      ? subdomainProblems(claim).map((problem) =>
          invalidError(field, name, `PVC name ${JSON.stringify(claim)}: ${problem}`),
        )
      : []),
  ];
}

function checkNotCreated(field: string, volume: JsonObject, created: readonly string[]): FieldError[] {
  const name = textAt(volume, "persistentVolumeClaim.claimName");
  if (name === "" || !created.includes(name)) return [];
  return [invalidError(field, name, "must not reference a PVC that gets created for an ephemeral volume")];
}

// Volume sources of Pods and PersistentVolumes.
import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  requiredError,
  textNotSupportedError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { checkLabel, checkLabelName, checkOneOf } from "../../validation/fields.js";
import { claimSpecWarnings } from "../core/persistent-volume-claim.js";
import { checkDriverName, checkMembers, checkSecretReference } from "./driver-names.js";

/** Validates the source of a volume at `path`. */
export type SourceRule = (path: string, source: JsonObject) => FieldError[];

const PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

const MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const PAIRS_RULE = "must be a host:port pair or multiple pairs separated by commas";

const CSI_SECRETS = [
  "controllerPublishSecretRef",
  "controllerExpandSecretRef",
  "nodePublishSecretRef",
  "nodeExpandSecretRef",
];

/** Validation of sources that Pods and PersistentVolumes share. */
export const SHARED_SOURCES: Record<string, SourceRule> = {
  hostPath: (path, source) => [
    ...checkPath(`${path}.path`, textAt(source, "path")),
    ...(textAt(source, "path") === "" ? [] : checkOneOf(`${path}.type`, memberOf(source, "type"), PATH_TYPES)),
  ],
  gcePersistentDisk: (path, source) => [...needs("pdName")(path, source), ...checkPartition(path, source)],
  awsElasticBlockStore: (path, source) => [...needs("volumeID")(path, source), ...checkPartition(path, source)],
  glusterfs: needs("endpoints", "path"),
  flocker: checkFlocker,
  nfs: (path, source) => [...needs("server", "path")(path, source), ...checkAbsolute(path, textAt(source, "path"))],
  rbd: needs("monitors", "image"),
  quobyte: checkQuobyte,
  cephfs: needs("monitors"),
  cinder: (path, source) => [...needs("volumeID")(path, source), ...checkSecretOf(path, source, "name")],
  fc: checkFibreChannel,
  flexVolume: checkFlexVolume,
  azureFile: needs("secretName", "shareName"),
  vsphereVolume: needs("volumePath"),
  photonPersistentDisk: needs("pdID"),
  portworxVolume: needs("volumeID"),
  azureDisk: checkAzureDisk,
  scaleIO: needs("gateway", "system", "volumeName"),
  storageos: (path, source) => [...checkStorageOs(path, source), ...checkSecretOf(path, source, "name")],
};

// In the order in which kube-apiserver checks them.
const OF_VOLUMES: Record<string, SourceRule> = {
  ...pick("hostPath", "gcePersistentDisk", "awsElasticBlockStore"),
  glusterfs: (path, source) => [...needs("endpoints", "path")(path, source), ...checkEndpointsNamespace(path, source)],
  ...pick("flocker", "nfs", "rbd", "quobyte", "cephfs"),
  iscsi: (path, source) => [
    ...checkIscsi(path, source, "must be valid format"),
    ...(objectAt(source, "secretRef") === undefined ? [] : checkSecretOf(path, source, "name")),
  ],
  cinder: (path, source) => [...needs("volumeID")(path, source), ...checkSecretOf(path, source, "name", "namespace")],
  ...pick("fc", "flexVolume"),
  azureFile: (path, source) => [
    ...needs("secretName", "shareName")(path, source),
    ...(memberOf(source, "secretNamespace") === "" ? [requiredError(`${path}.secretNamespace`)] : []),
  ],
  ...pick("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO"),
  local: (path, source) => checkPath(`${path}.path`, textAt(source, "path")),
  storageos: (path, source) => [...checkStorageOs(path, source), ...checkSecretOf(path, source, "name", "namespace")],
  csi: checkCsi,
};

/** The source fields of a PersistentVolume. */
export const VOLUME_SOURCES: readonly string[] = Object.keys(OF_VOLUMES);

function pick(...keys: string[]): Record<string, SourceRule> {
  return Object.fromEntries(keys.map((key) => [key, SHARED_SOURCES[key] as SourceRule]));
}

// kube-apiserver uses other names than the fields for some of them.
const OTHER_PATHS: Record<string, { first?: string; extra?: string }> = {
  gcePersistentDisk: { first: "persistentDisk" },
  cephfs: { extra: "cephFS" },
  downwardAPI: { extra: "downwarAPI" },
};

/** Validates that a PersistentVolume at `path` has exactly one source, and validates it. */
export function checkSources(path: string, spec: JsonObject): FieldError[] {
  const isUnbound = objectAt(spec, "local") !== undefined && objectAt(spec, "nodeAffinity") === undefined;
  const isFirst = Object.keys(OF_VOLUMES).find((key) => objectAt(spec, key) !== undefined) === "local";
  return [
    // kube-apiserver does not count this source.
    ...checkOneSource(path, spec, { rules: OF_VOLUMES, uncounted: ["flexVolume"] }),
    ...(isUnbound && isFirst ? [requiredError(`${path}.nodeAffinity`, "Local volume requires node affinity")] : []),
  ];
}

/** Validates that a volume has exactly one source in `rules`: the first is validated, further ones are rejected unless they are in `uncounted`. */
export function checkOneSource(
  path: string,
  volume: JsonObject,
  { rules, uncounted = [] }: { rules: Record<string, SourceRule>; uncounted?: readonly string[] },
): FieldError[] {
  const given = Object.keys(rules).filter((key) => objectAt(volume, key) !== undefined);
  if (given.length === 0) return [requiredError(path, "must specify a volume type")];
  return given.flatMap((key, index) =>
    index > 0 && !uncounted.includes(key)
      ? [forbiddenError(`${path}.${OTHER_PATHS[key]?.extra ?? key}`, "may not specify more than 1 volume type")]
      : (rules[key] as SourceRule)(`${path}.${OTHER_PATHS[key]?.first ?? key}`, objectAt(volume, key) as JsonObject),
  );
}

/** Returns a rule for required fields. */
export function needs(...keys: string[]): SourceRule {
  return (path, source) => checkMembers(path, source, keys);
}

/** Validates a required path without "..". */
export function checkPath(field: string, path: string): FieldError[] {
  if (path === "") return [requiredError(field)];
  return checkNoBacksteps(field, path);
}

/** Validates that a path does not contain "..". */
export function checkNoBacksteps(field: string, path: string): FieldError[] {
  return path.split("/").includes("..") ? [invalidError(field, path, "must not contain '..'")] : [];
}

function checkAbsolute(path: string, value: string): FieldError[] {
  return value.startsWith("/") ? [] : [invalidError(`${path}.path`, value, "must be an absolute path")];
}

function checkPartition(path: string, source: JsonObject): FieldError[] {
  return checkByte(`${path}.partition`, Number(memberOf(source, "partition") ?? 0), 1);
}

function checkByte(field: string, value: number, shownLeast = 0): FieldError[] {
  return value >= 0 && value <= 255
    ? []
    : [invalidError(field, value, `must be between ${shownLeast} and 255, inclusive`)];
}

function checkFlocker(path: string, source: JsonObject): FieldError[] {
  const [name, uuid] = [textAt(source, "datasetName"), textAt(source, "datasetUUID")];
  return [
    ...(name === "" && uuid === "" ? [requiredError(path, "one of datasetName and datasetUUID is required")] : []),
    ...(name !== "" && uuid !== ""
      ? [invalidError(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")]
      : []),
    ...(name.includes("/") ? [invalidError(`${path}.datasetName`, name, "must not contain '/'")] : []),
  ];
}

function checkQuobyte(path: string, source: JsonObject): FieldError[] {
  const [registry, tenant] = [textAt(source, "registry"), textAt(source, "tenant")];
  const field = `${path}.registry`;
  return [
    ...(registry === "" ? [requiredError(field, PAIRS_RULE)] : []),
    ...(registry !== "" && tenant.length >= 65
      ? [requiredError(`${path}.tenant`, "must be a UUID and may not exceed a length of 64 characters")]
      : []),
    ...(registry === "" || tenant.length >= 65 ? [] : registry.split(","))
      .filter((pair) => !/^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(pair))
      .map(() => invalidError(field, registry, PAIRS_RULE)),
    ...needs("volume")(path, source),
  ];
}

/** Validates an iSCSI source; `unknown` is the message for an initiator name with an invalid prefix. */
export function checkIscsi(path: string, source: JsonObject, unknown: string): FieldError[] {
  const hasChap = ["chapAuthDiscovery", "chapAuthSession"].some((key) => memberOf(source, key) === true);
  const initiator = memberOf(source, "initiatorName");
  return [
    ...needs("targetPortal", "iqn")(path, source),
    ...(textAt(source, "iqn") === "" ? [] : checkInitiator(`${path}.iqn`, textAt(source, "iqn"), unknown)),
    ...checkByte(`${path}.lun`, Number(memberOf(source, "lun") ?? 0)),
    ...(hasChap ? needs("secretRef")(path, source) : []),
    ...(typeof initiator === "string" ? checkInitiator(`${path}.initiatorname`, initiator, unknown) : []),
  ];
}

const INITIATORS: Record<string, RegExp> = {
  iqn: /iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$/,
  eui: /^eui.[A-Za-z0-9]{16}$/,
  naa: /^naa.[A-Za-z0-9]{32}$/,
};

function checkInitiator(field: string, name: string, unknown: string): FieldError[] {
  const kind = Object.keys(INITIATORS).find((prefix) => name.startsWith(prefix));
  if (kind === undefined) return [invalidError(field, name, unknown)];
  return INITIATORS[kind]?.test(name) === true ? [] : [invalidError(field, name, "must be valid format")];
}

function checkFlexVolume(path: string, source: JsonObject): FieldError[] {
  const reserved = Object.keys(objectAt(source, "options") ?? {}).filter((key) =>
    /\.(kubernetes|k8s)\.io$/i.test(`.${key.split("/")[0]}`),
  );
  return [
    ...needs("driver")(path, source),
    ...reserved.map((key) =>
      invalidError(`${path}.options[${key}]`, key, "kubernetes.io and k8s.io namespaces are reserved"),
    ),
  ];
}

function checkEndpointsNamespace(path: string, source: JsonObject): FieldError[] {
  const [field, namespace] = [`${path}.endpointsNamespace`, memberOf(source, "endpointsNamespace")];
  if (typeof namespace !== "string") return [];
  const detail = "if the endpointnamespace is set, it must be a valid namespace name";
  return namespace === "" ? [invalidError(field, namespace, detail)] : checkLabel(field, namespace);
}

function checkSecretOf(path: string, source: JsonObject, ...keys: string[]): FieldError[] {
  const secret = objectAt(source, "secretRef");
  return secret === undefined ? [] : checkMembers(`${path}.secretRef`, secret, keys);
}

function checkFibreChannel(path: string, source: JsonObject): FieldError[] {
  const [targets, ids] = [arrayAt(source, "targetWWNs") ?? [], arrayAt(source, "wwids") ?? []];
  const lun = memberOf(source, "lun") ?? null;
  const [names, missing] = [`${path}.targetWWNs`, "lun is required if targetWWNs is specified"];
  return [
    ...(targets.length + ids.length === 0
      ? [requiredError(names, "must specify either targetWWNs or wwids, but not both")]
      : []),
    ...(targets.length > 0 && ids.length > 0
      ? [invalidError(names, targets, "targetWWNs and wwids can not be specified simultaneously")]
      : []),
    ...(targets.length > 0 && lun === null ? [requiredError(`${path}.lun`, missing)] : []),
    ...(targets.length > 0 && lun !== null ? checkByte(`${path}.lun`, Number(lun)) : []),
  ];
}

function checkAzureDisk(path: string, source: JsonObject): FieldError[] {
  const [kind, uri] = [memberOf(source, "kind"), textAt(source, "diskURI")];
  const isManaged = kind === "Managed";
  const fits = uri.startsWith(isManaged ? "/subscriptions/" : "https://");
  return [
    ...needs("diskName", "diskURI")(path, source),
    ...checkOneOf(`${path}.cachingMode`, memberOf(source, "cachingMode"), ["None", "ReadOnly", "ReadWrite"]),
    ...checkOneOf(`${path}.kind`, kind, ["Dedicated", "Managed", "Shared"]),
    ...(fits ? [] : [textNotSupportedError(`${path}.diskURI`, uri, [isManaged ? MANAGED_DISK : BLOB_DISK])]),
  ];
}

function checkStorageOs(path: string, source: JsonObject): FieldError[] {
  const [name, namespace] = [textAt(source, "volumeName"), textAt(source, "volumeNamespace")];
  return [
    ...checkLabelName(`${path}.volumeName`, name),
    ...(namespace === "" ? [] : checkLabel(`${path}.volumeNamespace`, namespace)),
  ];
}

function checkCsi(path: string, source: JsonObject): FieldError[] {
  return [
    ...checkDriverName(`${path}.driver`, textAt(source, "driver")),
    ...needs("volumeHandle")(path, source),
    ...CSI_SECRETS.flatMap((key) => {
      const reference = objectAt(source, key);
      return reference === undefined ? [] : checkSecretReference(`${path}.${key}`, reference);
    }),
  ];
}

export const DEPRECATED_IN_VOLUMES = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];
const deprecatedSince = (deprecated: string, removed: string) =>
  `deprecated in ${deprecated}, non-functional in ${removed}+`;

// In the order in which kube-apiserver reports them for Pods.
const DEPRECATED_SOURCES: { readonly [source: string]: string } = {
  photonPersistentDisk: deprecatedSince("v1.11", "v1.16"),
  gitRepo: "deprecated in v1.11, and disabled by default in v1.33+",
  scaleIO: deprecatedSince("v1.16", "v1.22"),
  flocker: deprecatedSince("v1.22", "v1.25"),
  storageos: deprecatedSince("v1.22", "v1.25"),
  quobyte: deprecatedSince("v1.22", "v1.25"),
  glusterfs: deprecatedSince("v1.25", "v1.26"),
  cephfs: deprecatedSince("v1.28", "v1.31"),
  rbd: deprecatedSince("v1.28", "v1.31"),
};

/** Warns about deprecated sources of a volume at `path`; for PersistentVolumes, only some of them are reported. */
export function sourceWarnings(path: string, volume: JsonObject, sources = Object.keys(DEPRECATED_SOURCES)): string[] {
  const template = objectAt(objectAt(volume, "ephemeral"), "volumeClaimTemplate");
  return [
    ...sources
      .filter((source) => objectAt(volume, source) !== undefined)
      .map((source) => `${path}.${source === "storageos" ? "storageOS" : source}: ${DEPRECATED_SOURCES[source]}`),
    ...(template === undefined
      ? []
      : claimSpecWarnings(`${path}.ephemeral.volumeClaimTemplate.spec`, objectAt(template, "spec") ?? {})),
  ];
}

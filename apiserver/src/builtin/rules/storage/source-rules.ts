// Where the data of a volume are: one place, described in the words of its kind of storage.
import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { arrayAt, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { textAt } from "../../read-path.js";
import { checkLabel, checkLabelName, checkOneOf } from "../field-rules.js";
import { checkDriverName, checkMembers, checkSecretReference } from "./name-rules.js";

type SourceRule = (path: string, source: JsonObject) => FieldError[];

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

// In the order in which Kubernetes looks for them: the first counts, the others are one too many.
const SOURCES: Record<string, SourceRule> = {
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
  iscsi: checkIscsi,
  cinder: needs("volumeID"),
  fc: checkFibreChannel,
  flexVolume: needs("driver"),
  azureFile: needs("secretName", "shareName"),
  vsphereVolume: needs("volumePath"),
  photonPersistentDisk: needs("pdID"),
  portworxVolume: needs("volumeID"),
  azureDisk: checkAzureDisk,
  scaleIO: needs("gateway", "system", "volumeName"),
  local: (path, source) => checkPath(`${path}.path`, textAt(source, "path")),
  storageos: checkStorageOs,
  csi: checkCsi,
};
// Kubernetes names two of them otherwise than their members.
const OTHER_PATHS: Record<string, { first?: string; extra?: string }> = {
  gcePersistentDisk: { first: "persistentDisk" },
  cephfs: { extra: "cephFS" },
};

/** Checks the places that a volume at `path` names; there must be one. */
export function checkSources(path: string, spec: JsonObject): FieldError[] {
  const given = Object.keys(SOURCES).filter((key) => objectAt(spec, key) !== undefined);
  if (given.length === 0) return [requiredError(path, "must specify a volume type")];
  return given.flatMap((key, index) => {
    const rule = SOURCES[key] as SourceRule;
    if (index > 0 && key !== "flexVolume")
      return [forbiddenError(`${path}.${OTHER_PATHS[key]?.extra ?? key}`, "may not specify more than 1 volume type")];
    return [
      ...rule(`${path}.${OTHER_PATHS[key]?.first ?? key}`, objectAt(spec, key) as JsonObject),
      ...(key === "local" && objectAt(spec, "nodeAffinity") === undefined
        ? [requiredError(`${path}.nodeAffinity`, "Local volume requires node affinity")]
        : []),
    ];
  });
}

function needs(...keys: string[]): SourceRule {
  return (path, source) => checkMembers(path, source, keys);
}

function checkPath(field: string, path: string): FieldError[] {
  if (path === "") return [requiredError(field)];
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

function checkIscsi(path: string, source: JsonObject): FieldError[] {
  const iqn = textAt(source, "iqn");
  const hasChap = ["chapAuthDiscovery", "chapAuthSession"].some((key) => memberOf(source, key) === true);
  return [
    ...needs("targetPortal", "iqn")(path, source),
    ...(iqn === "" ||
    /^(iqn\.\d{4}-\d{2}\.([a-z0-9-]+(\.[a-z0-9-]+)+)(:.+)*|eui\.[0-9a-fA-F]{16}|naa\.[0-9a-fA-F]{32})$/.test(iqn)
      ? []
      : [invalidError(`${path}.iqn`, iqn, "must be valid format")]),
    ...checkByte(`${path}.lun`, Number(memberOf(source, "lun") ?? 0)),
    ...(hasChap ? needs("secretRef")(path, source) : []),
  ];
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
    ...(fits ? [] : [notSupportedError(`${path}.diskURI`, uri, [isManaged ? MANAGED_DISK : BLOB_DISK])]),
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

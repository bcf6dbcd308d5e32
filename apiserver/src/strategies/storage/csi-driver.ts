// Drivers of storage: what they are, where they run, and the classes that name them.
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkNotNegative, checkOneOf, checkQualifiedName } from "../../validation/fields.js";
import { type GoStruct, checkKept, goForm } from "../../validation/immutable-fields.js";
import { checkDriverName } from "../shared/driver-names.js";

const MAX_NODE_ID = 256;
const LEAST_TOKEN_SECONDS = 600;
const MOST_TOKEN_SECONDS = 2 ** 32;
const LEAST_UPDATE_SECONDS = 10;
const MAX_PARAMETERS = 512;
const MAX_PARAMETER_BYTES = 256 * 1024;

/** Checks a CSIDriver. */
export function checkDriver(driver: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(driver, "spec") ?? {};
  const requests = objectsAt(spec, "tokenRequests");
  const [period, inSecrets] = ["nodeAllocatableUpdatePeriodSeconds", "serviceAccountTokenInSecrets"] as const;
  const [seconds, place] = [memberOf(spec, period), memberOf(spec, inSecrets) ?? null];
  const modes = arrayAt(spec, "volumeLifecycleModes") ?? [];
  const unused = `${inSecrets} is set but no tokenRequests are specified`;
  return [
    ...checkOneOf("spec.fsGroupPolicy", memberOf(spec, "fsGroupPolicy"), ["File", "None", "ReadWriteOnceWithFSType"]),
    ...checkTokenRequests("spec.tokenRequests", requests),
    ...modes
      .filter((mode) => mode !== "Persistent" && mode !== "Ephemeral")
      .map((mode) => notSupportedError("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"])),
    ...(typeof seconds === "number" && seconds < LEAST_UPDATE_SECONDS
      ? [invalidError(`spec.${period}`, seconds, `must be greater than or equal to ${LEAST_UPDATE_SECONDS} seconds`)]
      : []),
    ...(place !== null && requests.length === 0 ? [invalidError(`spec.${inSecrets}`, place, unused)] : []),
    ...(old === undefined ? [] : checkDriverKept(spec, objectAt(old, "spec") ?? {})),
  ];
}

function checkDriverKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const [attach, modes] = ["attachRequired", "volumeLifecycleModes"] as const;
  const shown = (one: JsonObject, key: string) => memberOf(one, key) ?? null;
  return [
    // Kubernetes gives the field another name.
    ...checkKept("spec.attachedRequired", shown(spec, attach), shown(old, attach)),
    ...checkKept(`spec.${modes}`, shown(spec, modes), shown(old, modes)),
  ];
}

function checkTokenRequests(path: string, requests: JsonObject[]): FieldError[] {
  const audiences = new Set<string>();
  return requests.flatMap((request, index) => {
    const audience = textAt(request, "audience");
    if (audiences.has(audience)) return [duplicateError(`${path}[${index}].audience`, audience)];
    audiences.add(audience);
    const seconds = memberOf(request, "expirationSeconds");
    const field = `${path}[${index}].expirationSeconds`;
    if (typeof seconds !== "number") return [];
    return [
      ...(seconds < LEAST_TOKEN_SECONDS
        ? [invalidError(field, seconds, "may not specify a duration less than 10 minutes")]
        : []),
      ...(seconds > MOST_TOKEN_SECONDS
        ? [invalidError(field, seconds, "may not specify a duration larger than 2^32 seconds")]
        : []),
    ];
  });
}

const NODE_DRIVER: GoStruct = { Name: "", NodeID: "", TopologyKeys: [], Allocatable: null };

/** Checks a CSINode, whose drivers keep all but what they can be given. */
export function checkDriversOfNode(node: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [drivers, before] = [node, old ?? {}].map((one) => objectsAt(one, "spec.drivers")) as [
    JsonObject[],
    JsonObject[],
  ];
  const shown = ({ allocatable: _, ...driver }: JsonObject) => goForm(NODE_DRIVER, driver);
  const kept = before.flatMap((one) =>
    drivers
      .filter((driver) => textAt(driver, "name") === textAt(one, "name"))
      .flatMap((driver) => checkKept("spec.drivers", shown(driver), shown(one))),
  );
  return [...checkNodeDrivers(drivers), ...kept];
}

function checkNodeDrivers(drivers: JsonObject[]): FieldError[] {
  const names = new Set<string>();
  return drivers.flatMap((driver, index) => {
    const path = `spec.drivers[${index}]`;
    const [name, id] = [textAt(driver, "name"), textAt(driver, "nodeID")];
    const isTaken = names.has(name);
    names.add(name);
    return [
      ...checkDriverName(`${path}.name`, name),
      ...(id === "" ? [requiredError(`${path}.nodeID`)] : []),
      ...(Buffer.byteLength(id) > MAX_NODE_ID
        ? [invalidError(`${path}.nodeID`, id, `must be ${MAX_NODE_ID} characters or less`)]
        : []),
      ...checkNotNegative(`${path}.allocatable.count`, memberOf(objectAt(driver, "allocatable"), "count")),
      ...(isTaken ? [duplicateError(`${path}.name`, name)] : []),
      ...checkTopologyKeys(path, (arrayAt(driver, "topologyKeys") ?? []).map(String)),
    ];
  });
}

function checkTopologyKeys(path: string, keys: string[]): FieldError[] {
  return keys.flatMap((key, index) => [
    ...(key === "" ? [requiredError(path)] : []),
    ...(keys.indexOf(key) < index ? [duplicateError(path, key)] : []),
    ...checkQualifiedName(path, key),
  ]);
}

/** Demands the name of what provides storage, in which capitals may be. */
export function checkProvisioner(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  const own = name.toLowerCase();
  return checkQualifiedName(field, own);
}

/** Checks a VolumeAttributesClass, whose parameters stay. */
export function checkAttributesClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const changed = ["driverName", "parameters"].filter(
    (key) => old !== undefined && !deepEqual(memberOf(object, key) ?? null, memberOf(old, key) ?? null),
  );
  return [
    ...changed.map((key) => forbiddenError(key, `updates to ${key} are forbidden.`)),
    ...checkProvisioner("driverName", textAt(object, "driverName")),
    ...checkParameters("parameters", object, { needsOne: true }),
  ];
}

/** Checks what a provisioner is told: names, and not too much. */
export function checkParameters(field: string, object: JsonObject, { needsOne }: { needsOne: boolean }): FieldError[] {
  const parameters = Object.entries(objectAt(object, field) ?? {});
  if (parameters.length > MAX_PARAMETERS) return [tooLongError(field, MAX_PARAMETERS)];
  const bytes = Buffer.byteLength(parameters.flat().join(""));
  return [
    ...parameters.filter(([key]) => key === "").map(([key]) => invalidError(field, key, "field can not be empty.")),
    ...(bytes > MAX_PARAMETER_BYTES ? [tooLongError(field, MAX_PARAMETER_BYTES)] : []),
    ...(needsOne && parameters.length === 0 ? [requiredError(field, "must contain at least one key/value pair")] : []),
  ];
}

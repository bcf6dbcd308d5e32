import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt } from "../../json.js";
import { addressProblems } from "../../validation/addresses.js";
import { checkConditions } from "../../validation/conditions.js";
import { checkLabel, checkOnce, checkRequired } from "../../validation/fields.js";
import { checkKept } from "../../validation/immutable-fields.js";
import { checkDriverName, checkPoolName } from "../shared/driver-names.js";
import { checkNodeSelector } from "../shared/node-selectors.js";
import type { Strategy } from "../strategy.js";
import { goAllocation, goClaim } from "./claim-form.js";
import { checkConfig, checkDeviceClaim, checkReference, deviceRequestDefaults, namesOf } from "./devices.js";

export const resourceClaimStrategy: Strategy = {
  resetOnStatus: [".metadata", ".spec"],
  returnsDeletedObject: true,
  checksMetadata: ["object", "change"],
  structDefaults: deviceRequestDefaults,
  dropFields: dropTakenDevices,
  validate: checkResourceClaim,
  validateStatus: checkDeviceClaimStatus,
};

/** Validates a ResourceClaim; its spec is immutable. */
function checkResourceClaim(claim: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (old !== undefined) return checkKept("spec", goClaim(claim), goClaim(old));
  return checkDeviceClaim("spec.devices", objectAt(objectAt(claim, "spec"), "devices") ?? {});
}

const MAX_USERS = 256;
const MAX_RESULTS = 32;
const MAX_CONFIGS = 64;
const MAX_CONDITIONS = 8;
const MAX_DATA_BYTES = 10 * 1024;
const MAX_ADDRESSES = 16;
const NO_DATA = "<value omitted>";

/** Validates the status of a ResourceClaim. */
function checkDeviceClaimStatus(claim: JsonObject, live: JsonObject): FieldError[] {
  const [allocation, before] = [claim, live].map((one) => objectAt(objectAt(one, "status"), "allocation"));
  const users = objectsAt(claim, "status.reservedFor");
  return [
    ...checkUsers("status.reservedFor", users),
    ...checkDevices("status.devices", objectsAt(claim, "status.devices"), allocation),
    ...(users.length > 0 && allocation === undefined
      ? [forbiddenError("status.reservedFor", "may not be specified when `allocated` is not set")]
      : []),
    ...(allocation === undefined ? [] : checkAllocation({ claim, allocation, before })),
  ];
}

function checkUsers(path: string, users: JsonObject[]): FieldError[] {
  if (users.length > MAX_USERS) return [tooManyError(path, users.length, MAX_USERS)];
  const uids = users.map((user) => textAt(user, "uid"));
  return [
    ...users.flatMap((user, index) =>
      ["resource", "name", "uid"].flatMap((key) => checkRequired(`${path}[${index}].${key}`, textAt(user, key))),
    ),
    ...checkOnce(path, uids),
  ];
}

function idOf(device: JsonObject): JsonObject {
  const [Driver, Pool, Device, ShareID] = ["driver", "pool", "device", "shareID"].map((key) => textAt(device, key));
  return { Driver: Driver ?? "", Pool: Pool ?? "", Device: Device ?? "", ShareID: ShareID ?? "" };
}

function checkDevices(path: string, devices: JsonObject[], allocation: JsonObject | undefined): FieldError[] {
  const given = objectsAt(allocation ?? {}, "devices.results").map((result) => JSON.stringify(idOf(result)));
  const ids = devices.map(idOf);
  const keys = ids.map((id) => JSON.stringify(id));
  return devices.flatMap((device, index) => {
    const [at, id] = [`${path}[${index}]`, ids[index] as JsonObject];
    return [
      ...checkIdentity(at, device),
      ...(given.includes(keys[index] as string)
        ? []
        : [invalidError(at, id, "must be an allocated device in the claim")]),
      ...checkReport(at, device),
      ...(keys.indexOf(keys[index] as string) < index ? [duplicateError(at, id)] : []),
    ];
  });
}

function checkIdentity(path: string, device: JsonObject): FieldError[] {
  const share = memberOf(device, "shareID") ?? null;
  return [
    ...checkDriverName(`${path}.driver`, textAt(device, "driver")),
    ...checkPoolName(`${path}.pool`, textAt(device, "pool")),
    ...checkLabel(`${path}.device`, textAt(device, "device")),
    ...(share === null ? [] : checkUid(`${path}.shareID`, String(share))),
  ];
}

const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const UID_RULE =
  "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";

function checkUid(field: string, uid: string): FieldError[] {
  const length = Buffer.byteLength(uid);
  if (![32, 36, 38, 45].includes(length))
    return [invalidError(field, uid, `error validating uid: invalid UUID length: ${length}`)];
  const bare = uid.replace(/^urn:uuid:/i, "").replace(/^\{(.*)\}$/, "$1");
  const isHex = length === 32 && /^[0-9a-f]{32}$/i.test(uid);
  if (!UID.test(bare) && !isHex) return [invalidError(field, uid, "error validating uid: invalid UUID format")];
  return length === 36 && uid === uid.toLowerCase() ? [] : [invalidError(field, uid, UID_RULE)];
}

function checkReport(path: string, device: JsonObject): FieldError[] {
  const conditions = objectsAt(device, "conditions");
  const data = memberOf(device, "data") ?? null;
  return [
    ...(conditions.length > MAX_CONDITIONS
      ? [tooManyError(`${path}.conditions`, conditions.length, MAX_CONDITIONS)]
      : []),
    ...checkConditions(`${path}.conditions`, conditions),
    ...(data === null ? [] : checkData(`${path}.data`, data)),
    ...checkNetwork(`${path}.networkData`, objectAt(device, "networkData")),
  ];
}

function checkData(field: string, data: JsonValue): FieldError[] {
  if (Buffer.byteLength(JSON.stringify(data)) > MAX_DATA_BYTES) return [tooLongError(field, MAX_DATA_BYTES)];
  return isObject(data) ? [] : [invalidError(field, NO_DATA, "must be a valid JSON object")];
}

function checkNetwork(path: string, network: JsonObject | undefined): FieldError[] {
  if (network === undefined) return [];
  const limits = { interfaceName: 256, hardwareAddress: 128 };
  const addresses = (arrayAt(network, "ips") ?? []).map(String);
  const tooLong = Object.entries(limits)
    .filter(([key, most]) => Buffer.byteLength(textAt(network, key)) > most)
    .map(([key, most]) => tooLongError(`${path}.${key}`, most));
  if (addresses.length > MAX_ADDRESSES)
    return [...tooLong, tooManyError(`${path}.ips`, addresses.length, MAX_ADDRESSES)];
  const rule = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
  return [
    ...tooLong,
    ...addresses.flatMap((address, index) =>
      isInterfaceAddress(address) ? [] : [invalidError(`${path}.ips[${index}]`, address, rule)],
    ),
    ...checkOnce(`${path}.ips`, addresses),
  ];
}

function isInterfaceAddress(text: string): boolean {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  return address !== "" && addressProblems(address).length === 0 && Number(bits) <= (address.includes(":") ? 128 : 32);
}

interface Allocated {
  readonly claim: JsonObject;
  readonly allocation: JsonObject;
  readonly before: JsonObject | undefined;
}

// An allocation is immutable and is not validated again.
function checkAllocation({ claim, allocation, before }: Allocated): FieldError[] {
  const path = "status.allocation";
  if (before !== undefined) return checkKept(path, goAllocation(allocation), goAllocation(before));
  const known = new Set(objectsAt(claim, "spec.devices.requests").flatMap(namesOf));
  const selector = objectAt(allocation, "nodeSelector");
  return [
    ...checkResults(`${path}.devices.results`, objectsAt(allocation, "devices.results"), known),
    ...checkConfigs(`${path}.devices.config`, objectsAt(allocation, "devices.config"), known),
    ...(selector === undefined ? [] : checkNodeSelector(`${path}.nodeSelector`, selector)),
  ];
}

function checkResults(path: string, results: JsonObject[], known: Set<string>): FieldError[] {
  if (results.length > MAX_RESULTS) return [tooManyError(path, results.length, MAX_RESULTS)];
  return results.flatMap((result, index) => {
    const at = `${path}[${index}]`;
    return [...checkReference(`${at}.request`, textAt(result, "request"), known), ...checkIdentity(at, result)];
  });
}

function checkConfigs(path: string, configs: JsonObject[], known: Set<string>): FieldError[] {
  if (configs.length > MAX_CONFIGS) return [tooManyError(path, configs.length, MAX_CONFIGS)];
  return configs.flatMap((config, index) => {
    const at = `${path}[${index}]`;
    const source = textAt(config, "source");
    const isKnown = source === "FromClass" || source === "FromClaim";
    const names = (arrayAt(config, "requests") ?? []).map(String);
    return [
      ...(source === "" ? [requiredError(`${at}.source`)] : []),
      ...(source === "" || isKnown ? [] : [notSupportedError(`${at}.source`, source, ["FromClaim", "FromClass"])]),
      ...names.flatMap((name, place) => checkReference(`${at}.requests[${place}]`, name, known)),
      ...checkOnce(`${at}.requests`, names),
      ...checkConfig(at, config),
    ];
  });
}

// Drops the status of devices that are no longer allocated.
function dropTakenDevices(claim: JsonObject, old: JsonObject | undefined): void {
  const keyOf = (device: JsonObject) =>
    ["driver", "pool", "device", "shareID"].map((key) => textAt(device, key)).join();
  const given = (one: JsonObject) => objectsAt(one, "status.allocation.devices.results").map(keyOf);
  const taken = given(old ?? {}).filter((device) => !given(claim).includes(device));
  const status = objectAt(claim, "status");
  const devices = objectsAt(claim, "status.devices");
  if (status === undefined || taken.length === 0 || devices.length === 0) return;
  const kept = devices.filter((device) => !taken.includes(keyOf(device)));
  if (kept.length === 0) delete status["devices"];
  else status["devices"] = kept;
}

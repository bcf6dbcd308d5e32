// What may be written to the status of claims and attachments of volumes.
import { compareQuantities, parseQuantity } from "@gen-operator/schema";
import {
  type FieldError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { BILLION } from "../shared/resource-requests.js";
import { textAt } from "../../builtin/read-path.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import { isNative } from "../pod-template/resources.js";

const RESIZE_STATES = [
  ...["ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizePending", "NodeResizeInProgress"],
  "NodeResizeInfeasible",
].sort();

/** Checks the status of a PersistentVolumeClaim. */
export function checkClaimStatus(claim: JsonObject): FieldError[] {
  const status = objectAt(claim, "status");
  const modes = arrayAt(objectAt(claim, "spec"), "accessModes") ?? [];
  const [states, sizes] = ["status.allocatedResourceStatuses", "status.allocatedResources"] as const;
  return [
    ...(modes.length === 0 ? [requiredError("Spec.accessModes")] : []),
    ...entriesOf(status, "capacity").flatMap(([name, size]) => checkSize(`status.capacity[${name}]`, size)),
    ...entriesOf(status, "allocatedResourceStatuses").flatMap(([name, state]) => [
      ...checkResourceName(states, name),
      ...(RESIZE_STATES.includes(String(state)) ? [] : [notSupportedError(states, name, RESIZE_STATES)]),
    ]),
    ...entriesOf(status, "allocatedResources").flatMap(([name, size]) => {
      const unknown = checkResourceName(sizes, name);
      return unknown.length > 0 ? unknown : checkSize(`${sizes}[${name}]`, size);
    }),
  ];
}

function entriesOf(status: JsonObject | undefined, key: string): [string, JsonValue][] {
  return Object.entries(objectAt(status, key) ?? {});
}

function checkSize(field: string, size: JsonValue): FieldError[] {
  if ((compareQuantities(String(size), "0") ?? 0) >= 0) return [];
  const value = parseQuantity(String(size)) ?? 0n;
  return [invalidError(field, Number(value / BILLION), "must be a valid resource quantity")];
}

function checkResourceName(field: string, name: string): FieldError[] {
  const problems = qualifiedNameProblems(name);
  if (problems.length > 0) return problems.map((problem) => invalidError(field, name, problem));
  return isNative(name) && name !== "storage" ? [notSupportedError(field, name, ["storage"])] : [];
}

const MAX_METADATA_BYTES = 256 * 1024;
const MAX_MESSAGE_BYTES = 1024;

/** Checks the status of a VolumeAttachment. */
export function checkAttachmentStatus(attachment: JsonObject): FieldError[] {
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
    // Kubernetes names another limit.
    ...(isTooLong ? [tooLongError(`${path}.message`, MAX_METADATA_BYTES)] : []),
    ...(typeof code === "number" && code < 0
      ? [invalidError(`${path}.errorCode`, code, "must be between 0 and 2147483647, inclusive")]
      : []),
  ];
}

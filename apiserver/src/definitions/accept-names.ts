// The controllers that accept a CRD's names and then establish it. Two writes, because clients wait for the changes.
import { approvalState, approvalTextOf, isProtectedGroup } from "@gen-operator/schema/definitions";
import { serverTime, timestampOf } from "../clock.js";
import { quote } from "../errors/quote.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";

/** What the naming controller writes into a CRD's status. */
export interface NamesStatus {
  acceptedNames: JsonObject;
  conditions: JsonObject[];
}

/** Decides which names of a CRD are free among the accepted names of others; `now` is RFC 3339. */
export function acceptNames(crd: JsonObject, others: readonly JsonObject[], now = nowText()): NamesStatus {
  const group = stringAt(objectAt(crd, "spec"), "group");
  const name = nameOf(crd);
  const rivals = others.filter(
    (other) => nameOf(other) !== name && stringAt(objectAt(other, "spec"), "group") === group,
  );
  const taken = takenNames(rivals);
  const requested = objectAt(objectAt(crd, "spec"), "names") ?? {};
  const accepted = objectAt(objectAt(crd, "status"), "acceptedNames") ?? {};

  const acceptedNames: JsonObject = { plural: "", kind: "", ...accepted };
  let conflict: { reason: string; message: string } | undefined;
  for (const [member, reason] of NAMES) {
    const values = textsAt(requested, member);
    const own = new Set(textsAt(accepted, member));
    const names = member === "kind" || member === "listKind" ? taken.kinds : taken.resources;
    const clash = values.filter((value) => value !== "" && !own.has(value) && names.has(value));
    if (clash.length > 0) conflict = { reason, message: clashText(clash) };
    else if (requested[member] === undefined) delete acceptedNames[member];
    else acceptedNames[member] = requested[member];
  }
  if (requested["categories"] !== undefined) acceptedNames["categories"] = requested["categories"];

  const conditions = conditionsOf(crd);
  const approval = approvalOf(crd, group ?? "");
  if (approval !== undefined) setCondition(conditions, approval, now);
  setCondition(conditions, { type: "NamesAccepted", ...outcomeOf(conflict) }, now);
  const established = conditions.find((condition) => condition["type"] === "Established");
  if (established?.["status"] !== "True") {
    const state = conflict === undefined ? INSTALLING : NOT_ACCEPTED;
    setCondition(conditions, { type: "Established", status: "False", ...state }, now);
  }
  return { acceptedNames, conditions };
}

/** Gives the conditions of a CRD whose names are accepted once it is served. */
export function establish(crd: JsonObject, now = nowText()): JsonObject[] {
  const conditions = conditionsOf(crd);
  const accepted = conditions.some(
    (condition) => condition["type"] === "NamesAccepted" && condition["status"] === "True",
  );
  if (accepted) setCondition(conditions, { type: "Established", status: "True", ...ESTABLISHED }, now);
  return conditions;
}

const NAMES = [
  ["plural", "PluralConflict"],
  ["singular", "SingularConflict"],
  ["shortNames", "ShortNamesConflict"],
  ["kind", "KindConflict"],
  ["listKind", "ListKindConflict"],
] as const;
const INSTALLING = { reason: "Installing", message: "the initial names have been accepted" };
const NOT_ACCEPTED = { reason: "NotAccepted", message: "not all names are accepted" };
const ESTABLISHED = { reason: "InitialNamesAccepted", message: "the initial names have been accepted" };
const NO_CONFLICTS = { reason: "NoConflicts", message: "no conflicts found" };

function outcomeOf(conflict: { reason: string; message: string } | undefined): JsonObject {
  return conflict === undefined ? { status: "True", ...NO_CONFLICTS } : { status: "False", ...conflict };
}

/** Gives the condition that only CRDs in Kubernetes' own groups have. */
function approvalOf(crd: JsonObject, group: string): JsonObject | undefined {
  if (!isProtectedGroup(group)) return undefined;
  const approval = approvalTextOf(crd);
  const type = "KubernetesAPIApprovalPolicyConformant";
  return approvalState(approval) === "bypassed"
    ? { type, status: "False", reason: "UnapprovedAnnotation", message: `not approved: ${quote(approval)}` }
    : { type, status: "True", reason: "ApprovedAnnotation", message: `approved in ${approval}` };
}

function takenNames(rivals: readonly JsonObject[]): { resources: Set<string>; kinds: Set<string> } {
  const names = rivals.map((rival) => objectAt(objectAt(rival, "status"), "acceptedNames") ?? {});
  const all = (members: readonly string[]): Set<string> =>
    new Set(names.flatMap((accepted) => members.flatMap((member) => textsAt(accepted, member))));
  return { resources: all(["plural", "singular", "shortNames"]), kinds: all(["kind", "listKind"]) };
}

function clashText(names: string[]): string {
  const texts = names.map((name) => `${quote(name)} is already in use`);
  return texts.length === 1 ? (texts[0] as string) : `[${texts.join(", ")}]`;
}

function textsAt(object: JsonObject, member: string): string[] {
  const value: JsonValue | undefined = object[member];
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function conditionsOf(crd: JsonObject): JsonObject[] {
  return (arrayAt(objectAt(crd, "status"), "conditions") ?? []).filter(isObject);
}

function setCondition(conditions: JsonObject[], condition: JsonObject, now: string): void {
  const index = conditions.findIndex((other) => other["type"] === condition["type"]);
  const previous = conditions[index];
  const time = previous?.["status"] === condition["status"] ? (previous?.["lastTransitionTime"] ?? now) : now;
  const { type, status, reason, message } = condition;
  const written = { type, status, lastTransitionTime: time, reason, message } as JsonObject;
  if (index < 0) conditions.push(written);
  else conditions[index] = written;
}

function nameOf(crd: JsonObject): string | undefined {
  return stringAt(objectAt(crd, "metadata"), "name");
}

function nowText(): string {
  return timestampOf(serverTime());
}

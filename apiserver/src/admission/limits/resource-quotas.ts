// Admission plugin ResourceQuota: rejects an object that would exceed a quota of its namespace, otherwise adds its usage to the status of the quota.
// As in kube-apiserver, the limits are those in status.hard, which a controller writes.
import {
  type Quantities,
  amount,
  askedBy,
  quantitiesAt,
  quantityShown,
  sumOf,
} from "../../strategies/shared/resource-requests.js";
import { objectsAt } from "../../builtin/read-path.js";
import { forbidden } from "../../errors/status-error.js";
import { type JsonObject, clone, compareText, objectAt, stringAt } from "../../json.js";
import { keyPrefixOf, metadataOf, resourceRefOf } from "../../object/object-meta.js";
import { computed, isInScopes, usageOf } from "../../quota.js";
import type { StoredObject } from "../../storage/store.js";
import type { putOwnStatus } from "../../write/managed-fields.js";
import type { AdmittedWrite } from "../admission.js";

const QUOTAS = { group: "", version: "v1", plural: "resourcequotas" };
// Core resources whose usage an update can change.
const COUNTED_ON_UPDATE = new Set(["services", "persistentvolumeclaims"]);
const REQUIRED_OF_CONTAINERS = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/** Writes the status of an object on behalf of the server. */
export type PutStatus = typeof putOwnStatus;

/** Charges a write to the quotas of its namespace. Throws 403 if it would exceed one of them; then no quota is changed. */
export function chargeQuotas(write: AdmittedWrite, putStatus: PutStatus): void {
  const { context, object } = write;
  const quotas = context.registry.find(QUOTAS);
  if (quotas === undefined || object === undefined || !isCounted(write)) return;
  const charged = quotas.store.list(keyPrefixOf(context.namespace)).flatMap((stored) => {
    const used = usedAfter(write, object, stored.object);
    return used === undefined ? [] : [{ stored, used }];
  });
  if (context.isDryRun) return;
  for (const { stored, used } of charged) putStatus(context.registry, quotas, { stored, next: withUsed(stored, used) });
}

function isCounted({ context, operation, subresource }: AdmittedWrite): boolean {
  const { type } = context.resource;
  if (subresource !== "" || context.namespace === undefined) return false;
  return operation === "CREATE" || (operation === "UPDATE" && type.group === "" && COUNTED_ON_UPDATE.has(type.plural));
}

function withUsed({ object }: StoredObject, used: Quantities): JsonObject {
  const next = clone(object);
  next["status"] = { ...objectAt(next, "status"), used: sorted(used) };
  return next;
}

function sorted(quantities: Quantities): JsonObject {
  return Object.fromEntries(Object.entries(quantities).sort(([one], [other]) => compareText(one, other)));
}

/** Returns the usage of a quota after the write; undefined if the write does not change it. Throws 403 if it would exceed the quota. */
function usedAfter(write: AdmittedWrite, object: JsonObject, quota: JsonObject): Quantities | undefined {
  const { type } = write.context.resource;
  const status = objectAt(quota, "status") ?? {};
  const [hard, used] = [quantitiesAt(status, "hard"), quantitiesAt(status, "used")];
  const isPod = type.group === "" && type.plural === "pods";
  const usage = usageOf(type, object);
  const bound = Object.keys(hard).filter((name) => Object.hasOwn(usage, name) || (isPod && isOfPods(name)));
  if (bound.length === 0 || !isInScopes(quota, object, { isPod })) return undefined;
  const quotaName = stringAt(metadataOf(quota), "name") ?? "";
  const refuse = (detail: string): Error =>
    forbidden(resourceRefOf(type, stringAt(metadataOf(object), "name") ?? ""), detail);
  const unsaid = isPod ? unsaidBy(object, bound) : "";
  if (unsaid !== "") throw refuse(`failed quota: ${quotaName}: must specify ${unsaid}`);
  if (bound.some((name) => !Object.hasOwn(used, name)))
    throw refuse(`status unknown for quota: ${quotaName}, resources: ${bound.sort(compareText).join(",")}`);
  const before = write.oldObject === undefined ? {} : usageOf(type, write.oldObject);
  const added = differenceOf(usage, before, bound);
  if (Object.keys(added).length === 0) return undefined;
  const after = sumOf([used, added]);
  const exceeded = Object.keys(added).filter((name) => amount(after[name] ?? "0") > amount(hard[name] ?? "0"));
  if (exceeded.length === 0) return after;
  const [requested, present, limited] = [added, used, hard].map((all) => printed(all, exceeded));
  throw refuse(`exceeded quota: ${quotaName}, requested: ${requested}, used: ${present}, limited: ${limited}`);
}

function isOfPods(name: string): boolean {
  return (
    name === "pods" || REQUIRED_OF_CONTAINERS.includes(name) || /^((requests|limits)\.)?ephemeral-storage$/.test(name)
  );
}

// Each container has to specify the compute resources that the quota limits, unless the Pod has Pod-level resources.
function unsaidBy(pod: JsonObject, bound: readonly string[]): string {
  const spec = objectAt(pod, "spec") ?? {};
  if (objectAt(spec, "resources") !== undefined) return "";
  const containers = [...objectsAt(spec, "containers"), ...objectsAt(spec, "initContainers")];
  return REQUIRED_OF_CONTAINERS.filter((name) => bound.includes(name))
    .sort(compareText)
    .flatMap((name) => {
      const silent = containers.filter((container) => !Object.hasOwn(computed(askedBy(container)), name));
      const names = silent.map((container) => stringAt(container, "name") ?? "").sort(compareText);
      return names.length === 0 ? [] : [`${name} for: ${names.join(",")}`];
    })
    .join("; ");
}

function differenceOf(usage: Quantities, before: Quantities, names: readonly string[]): Quantities {
  const added = names.flatMap((name) => {
    const more = amount(usage[name] ?? "0") - amount(before[name] ?? "0");
    if (more <= 0n) return [];
    return [[name, before[name] === undefined ? (usage[name] as string) : quantityShown(`${more}n`)]];
  });
  return Object.fromEntries(added) as Quantities;
}

function printed(quantities: Quantities, names: readonly string[]): string {
  return [...names]
    .sort(compareText)
    .map((name) => `${name}=${quantityShown(quantities[name] ?? "0")}`)
    .join(",");
}

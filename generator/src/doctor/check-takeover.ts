import { isDeepStrictEqual } from "node:util";
import type { ApiClient, JsonPatchOperation, KubernetesObject, ResourceDefinition } from "@gen-operator/runtime";
import {
  type ControllerModel,
  type KubernetesDependentModel,
  type ProjectModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
} from "../model/project-model.js";
import { type Check, ok, skipped } from "./check.js";

const TIMEOUT_MS = 60_000;
const FIELD_MANAGER = "gen-operator-doctor";
/** Maximum number of fields listed per controller. */
const MOST_LISTED = 200;
/** Field managers of Kubernetes components, which an operator does not replace. */
const KUBERNETES = /^(?:kube-controller-manager|kube-scheduler|kube-apiserver|kubelet|cloud-controller-manager)$/;

type ManagedEntry = NonNullable<KubernetesObject["metadata"]["managedFields"]>[number];

/** The fields that one object would lose, with the manager that owns them now. */
interface Loss {
  readonly manager: string;
  readonly object: string;
  readonly lines: readonly string[];
  readonly isRejected: boolean;
}

/**
 * Lists the fields that `formerFieldManagers` of each controller would remove, by a dry run for each object. Without `formerFieldManagers`, lists the
 * fields of each other field manager.
 *
 * The operator must have adopted the objects: the fields that it owns show what `desired` returns.
 */
export async function checkTakeover(client: ApiClient, model: ProjectModel): Promise<Check[]> {
  const { messageOf, isApiError } = await import("@gen-operator/runtime");
  const checks: Check[] = [];
  for (const controller of model.controllers) {
    const name = `takeover of ${controller.name}`;
    try {
      checks.push(await checkController(client, controller, name));
    } catch (error) {
      const advice = isApiError(error, 403)
        ? "ask for permission to list and patch the objects of the operator"
        : undefined;
      checks.push(skipped(name, messageOf(error), advice));
    }
  }
  return checks;
}

async function checkController(client: ApiClient, controller: ControllerModel, name: string): Promise<Check> {
  const { settings } = controller;
  const stated = settings.formerFieldManagers ?? [];
  const label = `gen-operator.dev/controller in (${[controller.name, ...(settings.formerNames ?? [])].join(",")})`;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const losses: Loss[] = [];
  let count = 0;
  for (const resource of writtenKinds(controller)) {
    const definition = definitionOf(resource);
    const objects = await client.list({ definition }, { labelSelector: label, signal });
    count += objects.length;
    for (const object of objects.filter((each) => isApplied(each, controller)).sort(byName)) {
      const { released = [] } = dependentOf(object, controller) ?? {};
      for (const managers of stated.length > 0 ? [stated] : othersOf(object, controller).map((each) => [each])) {
        const loss = await lossOf(client, { object, definition, managers, released, signal });
        if (loss !== undefined) losses.push(loss);
      }
    }
  }
  return judge(name, { losses, count, stated });
}

interface Findings {
  readonly losses: readonly Loss[];
  readonly count: number;
  readonly stated: readonly string[];
}

function judge(name: string, { losses, count, stated }: Findings): Check {
  if (count === 0) {
    const advice = "start the operator without formerFieldManagers, and check again when it has adopted the objects";
    return skipped(name, "no object has the label of the controller yet", advice);
  }
  const objects = `${count} ${count === 1 ? "object" : "objects"}`;
  const names = [...new Set(losses.map(({ manager }) => manager))].sort();
  if (losses.length === 0)
    return ok(name, `nothing is removed from ${objects}${stated.length > 0 ? ` that ${stated.join(", ")} wrote` : ""}`);
  const all = losses.flatMap(({ object, manager, lines }) =>
    lines.map((line) => (stated.length > 0 ? `${object}: ${line}` : `${manager}: ${object}: ${line}`)),
  );
  const more = all.length - MOST_LISTED;
  const details = more > 0 ? [...all.slice(0, MOST_LISTED), `and ${more} more`] : all;
  if (losses.some(({ isRejected }) => isRejected))
    return {
      name,
      outcome: "failed",
      message: `the API server rejects what formerFieldManagers removes from ${objects}`,
      details,
      advice: "return the fields from desired(), or list them under released of the dependent",
    };
  const message =
    stated.length > 0
      ? `formerFieldManagers removes fields from ${objects}, because desired() does not return them:`
      : `other field managers own fields of ${objects} that desired() does not return; they are removed if formerFieldManagers lists the manager:`;
  const advice =
    "return the fields to keep from desired(), or list them under released of the dependent" +
    (stated.length > 0 ? "" : `; to remove the rest, list the manager (${names.join(", ")}) under formerFieldManagers`);
  return { name, outcome: "warning", message, details, advice };
}

function writtenKinds({ dependents }: ControllerModel): readonly ResourceModel[] {
  const kinds = new Map<string, ResourceModel>();
  for (const dependent of dependents)
    if (isKubernetes(dependent) && !isReadOnly(dependent) && dependent.cluster === undefined)
      kinds.set(`${dependent.resource.group}/${dependent.resource.plural}`, dependent.resource);
  return [...kinds.values()];
}

function definitionOf({ group, version, ...resource }: ResourceModel): ResourceDefinition {
  return { ...resource, group, version, apiVersion: group === "" ? version : `${group}/${version}`, schema: {} };
}

function ownManagersOf({ name, settings, dependents }: ControllerModel): readonly string[] {
  const stated = dependents.flatMap((each) => (isKubernetes(each) ? (each.fieldManager ?? []) : []));
  return [settings.fieldManager ?? name, ...(settings.formerNames ?? []), ...stated];
}

function othersOf(
  { metadata: { managedFields = [] } }: KubernetesObject,
  controller: ControllerModel,
): readonly string[] {
  const own = ownManagersOf(controller);
  const found = managedFields.flatMap(({ manager = "", subresource }) =>
    subresource !== undefined || own.includes(manager) || KUBERNETES.test(manager) ? [] : [manager],
  );
  return [...new Set(found)].sort();
}

// Objects that are only created, or written by PUT, do not lose fields.
function isApplied(object: KubernetesObject, controller: ControllerModel): boolean {
  const dependent = dependentOf(object, controller);
  return (
    dependent?.mode !== "createOnly" && dependent?.serverSideApply !== false && dependent?.operations?.update !== false
  );
}

function dependentOf(
  { metadata }: KubernetesObject,
  { dependents }: ControllerModel,
): KubernetesDependentModel | undefined {
  const name = metadata.annotations?.["gen-operator.dev/dependent"];
  return dependents.filter(isKubernetes).find((each) => each.name === name);
}

interface Judged {
  readonly object: KubernetesObject;
  readonly definition: ResourceDefinition;
  readonly managers: readonly string[];
  /** Paths that are released, and so are not removed. */
  readonly released: readonly string[];
  readonly signal: AbortSignal;
}

async function lossOf(client: ApiClient, judged: Judged): Promise<Loss | undefined> {
  const { isApiError } = await import("@gen-operator/runtime");
  const { object, definition, managers, released, signal } = judged;
  const { managedFields = [], name, namespace, uid } = object.metadata;
  const isTaken = ({ manager = "", subresource }: ManagedEntry) =>
    subresource === undefined && managers.includes(manager);
  const [taken, others] = [managedFields.filter(isTaken), managedFields.filter((each) => !isTaken(each))];
  const fieldsOf = (entries: readonly ManagedEntry[]) => entries.map(({ fieldsV1 = {} }) => fieldsV1 as FieldsV1);
  // Fields shared only among these managers have no other owner.
  const fields = fieldsOf(taken).flatMap((each) => takenFields(object, each, fieldsOf(others)));
  const found = [...new Map(fields.map((field) => [JSON.stringify(field.path), field])).values()];
  const isReleased = ({ text }: TakenField) => released.some((each) => text === each || text.startsWith(`${each}.`));
  const outermost = found.filter(
    (field) => !isReleased(field) && !found.some((other) => isBelow(field.path, other.path)),
  );
  if (outermost.length === 0) return undefined;
  const what = `${definition.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  const manager = managers.filter((each) => taken.some((entry) => entry.manager === each)).join(", ");
  const operations: JsonPatchOperation[] = [
    { op: "test", path: "/metadata/uid", value: uid ?? null },
    ...[...outermost].sort(fromTheEnd).map(({ path }) => ({ op: "remove" as const, path: pointerOf(path) })),
  ];
  try {
    const request = { verb: "jsonPatch" as const, ref: { name, namespace }, body: operations };
    const options = { dryRun: true, fieldManager: FIELD_MANAGER, signal };
    const { object: after } = await client.write({ definition }, { ...request, ...options });
    const lines = linesOf(object, after, outermost);
    return lines.length === 0 ? undefined : { manager, object: what, lines, isRejected: false };
  } catch (error) {
    if (!isApiError(error) || error.code === 403 || error.code === 404) throw error;
    // The message of the API server may contain values of the object, so print only the field paths.
    const places = error.causes.flatMap(({ field }) => (field === undefined ? [] : [field]));
    const where = places.length > 0 ? ` at ${[...new Set(places)].join(", ")}` : "";
    const paths = outermost.map(({ text }) => text).join(", ");
    const line = `the API server rejects the removal of ${paths} (${error.code}${where})`;
    return { manager, object: what, lines: [line], isRejected: true };
  }
}

// A field that gets the same value as a default does not change.
function linesOf(before: object, after: object, fields: readonly TakenField[]): readonly string[] {
  const lines = fields.flatMap(({ elements, text, value }) => {
    const now = valueOfFields(after, elements);
    if (now === undefined) return [text];
    if (isDeepStrictEqual(now, value)) return [];
    return [isShown(value) && isShown(now) ? `${text} (${value} → ${now})` : `${text} (gets a default)`];
  });
  const template = ["f:spec", "f:template"];
  const isOfPods = valueOfFields(before, [...template, "f:spec", "f:containers"]) !== undefined;
  const isChanged = !isDeepStrictEqual(valueOfFields(before, template), valueOfFields(after, template));
  return [...lines.sort(), ...(isOfPods && isChanged ? ["the pods restart, because the pod template changes"] : [])];
}

// Strings may be secret.
function isShown(value: unknown): value is number | boolean {
  return typeof value === "number" || typeof value === "boolean";
}

function isBelow(path: Path, other: Path): boolean {
  return path.length > other.length && other.every((step, index) => path[index] === step);
}

// Remove the last items of a list first, so that the indexes of the others stay valid.
function fromTheEnd(a: TakenField, b: TakenField): number {
  for (let at = 0; at < Math.min(a.path.length, b.path.length); at++) {
    const [left, right] = [a.path[at]!, b.path[at]!];
    if (left === right) continue;
    return typeof left === "number" && typeof right === "number" ? right - left : String(left) < String(right) ? -1 : 1;
  }
  return b.path.length - a.path.length;
}

function pointerOf(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function byName(a: KubernetesObject, b: KubernetesObject): number {
  const key = ({ metadata: { namespace = "", name } }: KubernetesObject) => `${namespace}/${name}`;
  return key(a) < key(b) ? -1 : 1;
}

// Finds the fields that an object loses when the operator takes over the managed fields of a former field manager without applying them.

/** A set of fields, in the format of `metadata.managedFields`. */
interface FieldsV1 {
  readonly [element: string]: FieldsV1;
}

/** Path of a value in an object: names of members, and indexes of items. */
type Path = readonly (string | number)[];

/** A field that would be removed. */
interface TakenField {
  readonly path: Path;
  /** Elements of the field set that lead to the field. */
  readonly elements: readonly string[];
  /** The path in the notation of the API server, for example `spec.containers[name="web"].image`. */
  readonly text: string;
  readonly value: unknown;
}

interface Place {
  readonly value: unknown;
  readonly taken: FieldsV1;
  readonly others: readonly FieldsV1[];
  readonly path: Path;
  readonly elements: readonly string[];
  readonly text: string;
}

/**
 * Returns the fields of an object that only a former manager owns, which server-side apply removes when the new owner no longer applies them. Items
 * of a list are returned from last to first.
 */
export function takenFields(object: object, taken: FieldsV1, others: readonly FieldsV1[]): TakenField[] {
  return takenBelow({ value: object, taken, others, path: [], elements: [], text: "" });
}

/** Returns the value at a path of field-set elements; undefined if there is none. */
export function valueOfFields(object: object, elements: readonly string[]): unknown {
  let value: unknown = object;
  for (const element of elements) {
    const step = stepTo(value, element);
    value = step === undefined ? undefined : (value as { readonly [step: string | number]: unknown })[step];
  }
  return value;
}

function takenBelow({ value, taken, others, path, elements, text }: Place): TakenField[] {
  const found = Object.entries(taken).flatMap(([element, fields]): TakenField[] => {
    const step = stepTo(value, element);
    if (step === undefined) return [];
    const child = (value as { readonly [step: string | number]: unknown })[step];
    const owners = others.flatMap((each) => each[elementIn(each, element) ?? ""] ?? []);
    const place = {
      ...{ path: [...path, step], elements: [...elements, element] },
      ...{ text: text + textOf(element, text), value: child },
    };
    // An item of a list is owned by the managers of the item itself; a field, by every manager that owns something in it.
    const isField = element.startsWith("f:");
    const isShared = isField ? owners.length > 0 : owners.some(isMember);
    // List labels, annotations, finalizers, and owner references one by one.
    const isNamed = elements.includes("f:metadata") && Object.keys(fields).some((each) => each !== ".");
    if (!isShared && !isNamed && (isField || isMember(fields))) return [place];
    return takenBelow({ ...place, taken: fields, others: owners });
  });
  return found.sort((a, b) => Number(b.path.at(-1)) - Number(a.path.at(-1)) || 0);
}

function isMember(fields: FieldsV1): boolean {
  return Object.keys(fields).length === 0 || Object.hasOwn(fields, ".");
}

function stepTo(value: unknown, element: string): string | number | undefined {
  const [kind, rest] = [element.slice(0, 2), element.slice(2)];
  if (kind === "f:") return Object.hasOwn(Object(value) as object, rest) && !Array.isArray(value) ? rest : undefined;
  if (!Array.isArray(value)) return undefined;
  const index = kind === "k:" || kind === "v:" ? value.findIndex((item) => hasKeys(item, kind, rest)) : -1;
  return index === -1 ? undefined : index;
}

function hasKeys(item: unknown, kind: string, rest: string): boolean {
  const wanted: unknown = JSON.parse(rest);
  if (kind === "v:") return JSON.stringify(item) === JSON.stringify(wanted);
  const members = Object(item) as { readonly [name: string]: unknown };
  // The key of an item may contain a default that only the object has.
  return Object.entries(wanted as object).every(([name, value]) => members[name] === value);
}

function elementIn(fields: FieldsV1, element: string): string | undefined {
  if (Object.hasOwn(fields, element)) return element;
  if (element.startsWith("f:") || element === ".") return undefined;
  const canonical = (text: string) => text.slice(0, 2) + canonicalText(JSON.parse(text.slice(2)));
  const [wanted, kind] = [canonical(element), element.slice(0, 2)];
  return Object.keys(fields).find((each) => each.startsWith(kind) && canonical(each) === wanted);
}

function canonicalText(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function textOf(element: string, before: string): string {
  const [kind, rest] = [element.slice(0, 2), element.slice(2)];
  if (kind === "v:") return `[=${rest}]`;
  if (kind === "k:") {
    const keys = Object.entries(JSON.parse(rest) as object);
    return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join()}]`;
  }
  // A name with dots would look like a path.
  if (!/^[\w-]+$/.test(rest)) return `[${JSON.stringify(rest)}]`;
  return before === "" ? rest : `.${rest}`;
}

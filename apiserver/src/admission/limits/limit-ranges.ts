// Admission plugin LimitRanger: sets default requests and limits of containers, and rejects Pods and PersistentVolumeClaims that violate a LimitRange
// of their namespace. https://kubernetes.io/docs/concepts/policy/limit-range/
import {
  type Asked,
  BILLION,
  type Quantities,
  amount,
  askedBy,
  askedByPod,
  quantitiesAt,
} from "../../strategies/shared/resource-requests.js";
import { objectsAt } from "../../builtin/read-path.js";
import { forbidden } from "../../errors/status-error.js";
import { type JsonObject, compareText, objectAt, stringAt } from "../../json.js";
import { keyPrefixOf, metadataOf, resourceRefOf } from "../../object/object-meta.js";
import type { AdmissionPlugin, AdmittedWrite } from "../admission.js";

const LIMIT_RANGES = { group: "", version: "v1", plural: "limitranges" };
const ANNOTATION = "kubernetes.io/limit-ranger";

export const limitRanger: AdmissionPlugin = {
  resources: ["pods", "persistentvolumeclaims"],
  mutate: setContainerDefaults,
  validate: checkLimitRanges,
};

/** Sets the default requests and limits of the containers of a new Pod, in place. */
function setContainerDefaults(write: AdmittedWrite): void {
  const { object } = write;
  if (object === undefined || !isAbout(write, "pods") || write.operation !== "CREATE") return;
  for (const range of rangesFor(write)) setDefaultsOf(range, object);
}

/** Throws 403 if a Pod or PersistentVolumeClaim violates a LimitRange of its namespace. */
function checkLimitRanges(write: AdmittedWrite): void {
  const { object, operation, context } = write;
  if (object === undefined) return;
  const isPod = isAbout(write, "pods") && operation === "CREATE";
  if (!isPod && !isAbout(write, "persistentvolumeclaims")) return;
  for (const range of rangesFor(write)) {
    const problems = objectsAt(range, "spec.limits").flatMap((limit) =>
      isPod ? podProblems(limit, object) : claimProblems(limit, object),
    );
    if (problems.length === 0) continue;
    const all = [...new Set(problems)];
    const ref = resourceRefOf(context.resource.type, stringAt(metadataOf(object), "name") ?? "");
    throw forbidden(ref, all.length === 1 ? (all[0] as string) : `[${all.join(", ")}]`);
  }
}

function isAbout({ context, subresource, operation }: AdmittedWrite, plural: string): boolean {
  return context.resource.type.plural === plural && subresource === "" && operation !== "DELETE";
}

function rangesFor({ context }: AdmittedWrite): JsonObject[] {
  const store = context.registry.find(LIMIT_RANGES)?.store;
  if (store === undefined || store.size === 0) return [];
  return store.list(keyPrefixOf(context.namespace)).map(({ object }) => object);
}

function setDefaultsOf(range: JsonObject, pod: JsonObject): void {
  const ofContainers = objectsAt(range, "spec.limits").filter(({ type }) => type === "Container");
  const merged = (field: string): Quantities =>
    Object.assign({}, ...ofContainers.map((one) => quantitiesAt(one, field)));
  const [limits, requests] = [merged("default"), merged("defaultRequest")];
  const set = [
    ...objectsAt(pod, "spec.containers").map((container) => ({
      container,
      word: "container",
    })),
    ...objectsAt(pod, "spec.initContainers").map((container) => ({
      container,
      word: "init container",
    })),
  ].flatMap(({ container, word }) => [
    ...setMissing(container, "requests", {
      from: requests,
      text: `request for ${word}`,
    }),
    ...setMissing(container, "limits", {
      from: limits,
      text: `limit for ${word}`,
    }),
  ]);
  if (set.length === 0) return;
  const metadata = metadataOf(pod);
  const annotations = objectAt(metadata, "annotations") ?? {};
  metadata["annotations"] = {
    ...annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${set.join("; ")}`,
  };
}

function setMissing(
  container: JsonObject,
  field: "requests" | "limits",
  { from, text }: { from: Quantities; text: string },
): string[] {
  const resources = objectAt(container, "resources") ?? {};
  const present = quantitiesAt(resources, field);
  const missing = Object.keys(from).filter((name) => !Object.hasOwn(present, name));
  if (missing.length === 0) return [];
  const added = Object.fromEntries(missing.map((name) => [name, from[name] as string]));
  container["resources"] = { ...resources, [field]: { ...present, ...added } };
  return [`${missing.sort(compareText).join(", ")} ${text} ${stringAt(container, "name") ?? ""}`];
}

function podProblems(limit: JsonObject, pod: JsonObject): string[] {
  const type = stringAt(limit, "type") ?? "";
  if (type === "Pod") return problemsOf(limit, askedByPod(pod));
  if (type !== "Container") return [];
  const containers = [...objectsAt(pod, "spec.containers"), ...objectsAt(pod, "spec.initContainers")];
  return containers.flatMap((container) => problemsOf(limit, askedBy(container)));
}

function problemsOf(limit: JsonObject, asked: Asked): string[] {
  const type = stringAt(limit, "type") ?? "";
  const check = (field: string, problem: (name: string, bound: string) => string | undefined): string[] =>
    Object.entries(quantitiesAt(limit, field))
      .sort(([one], [other]) => compareText(one, other))
      .flatMap(([name, bound]) => problem(name, bound) ?? []);
  return [
    ...check("min", (name, bound) => {
      const start = `minimum ${name} usage per ${type} is ${bound}`;
      const [request, most] = [asked.requests[name], asked.limits[name]];
      if (request === undefined) return `${start}.  No request is specified`;
      if (amount(request) < amount(bound)) return `${start}, but request is ${request}`;
      return most !== undefined && amount(most) < amount(bound) ? `${start}, but limit is ${most}` : undefined;
    }),
    ...check("max", (name, bound) => {
      const start = `maximum ${name} usage per ${type} is ${bound}`;
      const [request, most] = [asked.requests[name], asked.limits[name]];
      if (most === undefined) return `${start}.  No limit is specified`;
      if (amount(most) > amount(bound)) return `${start}, but limit is ${most}`;
      return request !== undefined && amount(request) > amount(bound)
        ? `${start}, but request is ${request}`
        : undefined;
    }),
    ...check("maxLimitRequestRatio", (name, bound) => ratioProblem(asked, { name, bound, type })),
  ];
}

function ratioProblem(
  { requests, limits }: Asked,
  { name, bound, type }: { name: string; bound: string; type: string },
): string | undefined {
  const start = `${name} max limit to request ratio per ${type} is ${bound}`;
  const [request, most] = [amount(requests[name] ?? "0"), amount(limits[name] ?? "0")];
  if (request === 0n) return `${start}, but no request is specified or request is 0`;
  if (most === 0n) return `${start}, but no limit is specified or limit is 0`;
  const isWithin = most * BILLION <= amount(bound) * request;
  return isWithin ? undefined : `${start}, but provided ratio is ${(Number(most) / Number(request)).toFixed(6)}`;
}

function claimProblems(limit: JsonObject, claim: JsonObject): string[] {
  const type = "PersistentVolumeClaim";
  if (limit["type"] !== type) return [];
  const { requests } = askedBy(objectAt(claim, "spec") ?? {});
  const ofBound = (word: "minimum" | "maximum", isBroken: (request: bigint, bound: bigint) => boolean): string[] =>
    Object.entries(quantitiesAt(limit, word === "minimum" ? "min" : "max")).flatMap(([name, bound]) => {
      const request = requests[name];
      const start = `${word} ${name} usage per ${type} is ${bound}`;
      if (request === undefined) return [`${start}.  No request is specified`];
      return isBroken(amount(request), amount(bound)) ? [`${start}, but request is ${request}`] : [];
    });
  return [...ofBound("minimum", (one, bound) => one < bound), ...ofBound("maximum", (one, bound) => one > bound)];
}

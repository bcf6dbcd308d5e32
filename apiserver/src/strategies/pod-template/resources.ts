// Resource requests and limits of containers and Pods.
import { compareQuantities, parseQuantity } from "@gen-operator/schema";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notFoundError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, compareText, memberOf, objectAt } from "../../json.js";
import { checkLabel } from "../../validation/fields.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import { type Asked, BILLION, amount, askedByContainers, quantityShown } from "../shared/resource-requests.js";

const OF_CONTAINERS = /^(cpu|memory|ephemeral-storage|hugepages-.*)$/;
const STANDARD =
  /^((requests|limits)\.(cpu|memory|ephemeral-storage)|requests\.(storage|hugepages-.+)|pods|services|replicationcontrollers|resourcequotas|secrets|configmaps|persistentvolumeclaims|services\.(nodeports|loadbalancers)|storage)$/;

type NameProblems = (name: string) => string[];

/** Validates the resources of a container. */
export function checkResources(path: string, resources: JsonObject | undefined, podSpec: JsonObject): FieldError[] {
  return checkRequirements(path, resources, { podSpec, problemsOf: containerResourceProblems });
}

/** Validates the Pod overhead of a RuntimeClass, as limits. */
export function checkOverhead(path: string, overhead: JsonObject | undefined): FieldError[] {
  const resources = overhead === undefined ? {} : { limits: overhead };
  return checkRequirements(path, resources, { podSpec: {}, problemsOf: containerResourceProblems });
}

/** Validates Pod-level resources. */
export function checkPodResources(path: string, spec: JsonObject): FieldError[] {
  const resources = objectAt(spec, "resources");
  if (resources === undefined) return [];
  if (textAt(spec, "os.name") === "windows") return [forbiddenError(path, "may not be set for a windows pod")];
  const hasClaims = arrayAt(resources, "claims") !== undefined || wasGivenEmpty(resources, "claims");
  return [
    ...(hasClaims ? [forbiddenError(`${path}.claims`, "claims may not be set for Resources at pod-level")] : []),
    ...checkRequirements(path, resources, { podSpec: spec, problemsOf: resourceNameProblems }),
    ...["limits", "requests"].flatMap((list) =>
      Object.keys(objectAt(resources, list) ?? {})
        .filter((name) => resourceNameProblems(name).length === 0 && !/^(cpu|memory|hugepages-.+)$/.test(name))
        .map((name) => notSupportedError(`${path}.${list}[${name}]`, name, ["cpu", "hugepages-", "memory"])),
    ),
    ...checkAggregate(`${path}.requests`, objectAt(resources, "requests") ?? {}, { spec, list: "requests" }),
    ...checkAggregate(`${path}.limits`, objectAt(resources, "limits") ?? {}, { spec, list: "limits" }),
    ...checkWithin(path, spec, objectAt(resources, "limits") ?? {}),
  ];
}

// Pod-level requests, and limits of huge pages, must be at least the sum of those of the containers.
function checkAggregate(
  path: string,
  own: JsonObject,
  { spec, list }: { spec: JsonObject; list: keyof Asked },
): FieldError[] {
  return Object.entries(askedByContainers(spec, list)).flatMap(([name, total]) => {
    const given = memberOf(own, name);
    const isChecked = list === "requests" || name.startsWith("hugepages-");
    if (!isChecked || given === undefined || amount(total) <= amount(String(given))) return [];
    const detail = `must be greater than or equal to aggregate container ${list} of ${quantityShown(total)}`;
    return [invalidError(`${path}[${name}]`, given, detail)];
  });
}

// No container limit may exceed the Pod-level limit.
function checkWithin(path: string, spec: JsonObject, limits: JsonObject): FieldError[] {
  return objectsAt(spec, "containers").flatMap((container, index) =>
    Object.entries(objectAt(objectAt(container, "resources"), "limits") ?? {}).flatMap(([name, limit]) => {
      const most = memberOf(limits, name);
      if (most === undefined || (compareQuantities(String(limit), String(most)) ?? 0) <= 0) return [];
      const detail = `must be less than or equal to pod limits of ${String(most)}`;
      return [invalidError(`${path}.containers[${index}][${name}].limits`, String(limit), detail)];
    }),
  );
}

function checkRequirements(
  path: string,
  resources: JsonObject | undefined,
  { podSpec, problemsOf }: { podSpec: JsonObject; problemsOf: NameProblems },
): FieldError[] {
  const [limits, requests] = [objectAt(resources, "limits") ?? {}, objectAt(resources, "requests") ?? {}];
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  const needsMore =
    names.some((name) => name.startsWith("hugepages-")) && !names.some((name) => /^(cpu|memory)$/.test(name));
  return [
    ...checkAmounts(`${path}.limits`, limits, problemsOf),
    ...checkAmounts(`${path}.requests`, requests, problemsOf),
    ...Object.entries(requests).flatMap(([name, request]) =>
      checkRequest(path, { name, request: String(request) }, limits),
    ),
    ...(needsMore ? [forbiddenError(path, "HugePages require cpu or memory")] : []),
    ...checkClaimNames(`${path}.claims`, objectsAt(resources ?? {}, "claims"), podSpec),
  ];
}

function checkRequest(
  path: string,
  { name, request }: { name: string; request: string },
  limits: JsonObject,
): FieldError[] {
  const limit = memberOf(limits, name);
  // Resources that cannot be overcommitted require a limit equal to the request.
  const isExact = !mayBeOvercommitted(name);
  if (limit === undefined)
    return isExact ? [requiredError(`${path}.limits`, "Limit must be set for non overcommitable resources")] : [];
  const order = compareQuantities(request, String(limit)) ?? 0;
  if (order === 0 || (order < 0 && !isExact)) return [];
  const what = isExact ? "must be equal to" : "must be less than or equal to";
  return [invalidError(`${path}.requests`, request, `${what} ${name} limit of ${String(limit)}`)];
}

// Either a whole claim or single requests of it are referenced.
function checkClaimNames(path: string, claims: JsonObject[], podSpec: JsonObject): FieldError[] {
  const known = objectsAt(podSpec, "resourceClaims")
    .map((claim) => textAt(claim, "name"))
    .filter((name) => name !== "");
  const all = [...new Set(known)].sort(compareText).join(", ");
  const detail = `must be one of the names in pod.spec.resourceClaims${all === "" ? " which is empty" : `: ${all}`}`;
  const seen = new Set<string>();
  return claims.flatMap((claim, index) => {
    const [at, name, request] = [`${path}[${index}]`, textAt(claim, "name"), textAt(claim, "request")];
    if (name === "") return [requiredError(at)];
    const isWhole = seen.has(name);
    const key = request === "" ? name : `${name}/${request}`;
    const isTaken = isWhole || seen.has(key);
    const overlaps = request === "" && !isTaken ? [...seen].filter((one) => one.startsWith(`${name}/`)) : [];
    if (!isWhole) seen.add(key);
    const missing = notFoundError(at, name);
    return [
      ...(isWhole || request === "" ? [] : checkLabel(`${at}.request`, request)),
      ...(isTaken ? [duplicateError(at, isWhole ? name : key)] : overlaps.map(() => duplicateError(at, name))),
      ...(known.includes(name) ? [] : [{ ...missing, message: `${missing.message}: ${detail}` }]),
    ];
  });
}

function checkAmounts(path: string, amounts: JsonObject, problemsOf: NameProblems): FieldError[] {
  return Object.entries(amounts).flatMap(([name, amount]) => {
    const at = `${path}[${name}]`;
    const isNegative = String(amount).startsWith("-");
    const isBroken = isExtendedResource(name) && /[mun]$/.test(String(amount));
    return [
      ...problemsOf(name).map((detail) => invalidError(at, name, detail)),
      ...(isNegative ? [invalidError(at, amount, "must be greater than or equal to 0")] : []),
      ...(isBroken ? [invalidError(at, amount, "must be an integer")] : []),
      ...checkPages(at, name, String(amount)),
    ];
  });
}

const PAGES = "hugepages-";

function checkPages(field: string, name: string, quantity: string): FieldError[] {
  if (!name.startsWith(PAGES)) return [];
  const size = parseQuantity(name.slice(PAGES.length)) ?? 0n;
  const isWhole = size > 0n && size % BILLION === 0n && amount(quantity) % size === 0n;
  return isWhole ? [] : [invalidError(field, quantity, `${quantity} is not positive integer multiple of ${name}`)];
}

/** True for a resource that can be overcommitted: requests may be less than limits. */
export function mayBeOvercommitted(name: string): boolean {
  return isNative(name) && !name.startsWith(PAGES);
}

/** True for a resource in the kubernetes.io domain or without a domain. */
export function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** True for the name of an extended resource. */
export function isExtendedResource(name: string): boolean {
  return !isNative(name) && !name.startsWith("requests.") && qualifiedNameProblems(`requests.${name}`).length === 0;
}

/** Returns the problems of a resource name of a container. */
export function containerResourceProblems(name: string): string[] {
  const problems = resourceNameProblems(name);
  if (!isNative(name) && !isExtendedResource(name))
    return [...problems, "doesn't follow extended resource name standard"];
  if (name.includes("/") || OF_CONTAINERS.test(name)) return problems;
  return [...problems, "must be a standard resource for containers"];
}

/** Returns the problems of a resource name. */
export function resourceNameProblems(name: string): string[] {
  const problems = qualifiedNameProblems(name);
  const isKnown = name.includes("/") || OF_CONTAINERS.test(name) || STANDARD.test(name);
  return problems.length > 0 || isKnown ? problems : ["must be a standard resource type or fully qualified"];
}

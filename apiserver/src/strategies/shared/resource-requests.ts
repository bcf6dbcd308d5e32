import { canonicalQuantity, compareQuantities, parseQuantity } from "@gen-operator/schema";
import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, arrayAt, isObject, memberOf, objectAt } from "../../json.js";

/** Quantities such as `500m` by resource name. */
export type Quantities = Readonly<Record<string, string>>;

/** Requests and limits of a container, Pod, or claim. */
export interface Asked {
  requests: Quantities;
  limits: Quantities;
}

/** Returns the total requests and limits of a Pod; Pod-level resources override those of the containers. */
export function askedByPod(pod: JsonObject): Asked {
  const spec = objectAt(pod, "spec") ?? {};
  const own = askedBy(spec);
  return {
    requests: { ...askedByContainers(spec, "requests"), ...own.requests },
    limits: { ...askedByContainers(spec, "limits"), ...own.limits },
  };
}

/** Returns the total requests or limits of the containers. Init containers run sequentially before the others; sidecars keep running. */
export function askedByContainers(spec: JsonObject, field: keyof Asked): Quantities {
  const before = objectsAt(spec, "initContainers");
  const staying = before.filter(({ restartPolicy }) => restartPolicy === "Always");
  const running = sumOf([...objectsAt(spec, "containers"), ...staying].map((container) => askedBy(container)[field]));
  const result: Record<string, string> = { ...running };
  before.forEach((container, index) => {
    const beside = before.slice(0, index).filter((other) => staying.includes(other));
    const needed = sumOf([...beside, container].map((one) => askedBy(one)[field]));
    for (const [name, quantity] of Object.entries(needed)) {
      const present = result[name];
      if (present === undefined || amount(present) < amount(quantity)) result[name] = quantity;
    }
  });
  return result;
}

/** Adds quantities by resource name. */
export function sumOf(all: readonly Quantities[]): Quantities {
  const sum: Record<string, string> = {};
  for (const [name, quantity] of all.flatMap((one) => Object.entries(one))) {
    const present = sum[name];
    sum[name] =
      present === undefined
        ? quantity
        : printed(amount(present) + amount(quantity), amount(present) === 0n ? quantity : present);
  }
  return sum;
}

// The sum has the format of the first nonzero quantity.
function printed(sum: bigint, first: string): string {
  const bytes = sum / BILLION;
  const isBinary = first.endsWith("i") && sum % BILLION === 0n && bytes % 1024n === 0n;
  const text = isBinary ? `${bytes / 1024n}Ki` : `${sum}n`;
  return quantityShown(text);
}

/** Formats a valid quantity canonically, as kube-apiserver does. */
export function quantityShown(quantity: string): string {
  const canonical = canonicalQuantity(quantity);
  return "text" in canonical ? canonical.text : quantity;
}

/** Amounts are integers in units of 10^-9. */
export const BILLION = 1_000_000_000n;

/** Returns a quantity in units of 10^-9; 0 if it is invalid. */
export function amount(quantity: string): bigint {
  return parseQuantity(quantity) ?? 0n;
}

/** Returns the requests and limits of a container or claim spec. */
export function askedBy(holder: JsonObject): Asked {
  const resources = objectAt(holder, "resources") ?? {};
  return {
    requests: quantitiesAt(resources, "requests"),
    limits: quantitiesAt(resources, "limits"),
  };
}

/** Returns the quantities in a field of an object. */
export function quantitiesAt(object: JsonObject, field: string): Quantities {
  return Object.fromEntries(
    Object.entries(objectAt(object, field) ?? {}).map(([name, value]) => [name, String(value)]),
  );
}

/** Warns about fractional byte values in quantities at `path`. */
export function fractionWarnings(path: string, quantities: JsonObject | undefined, names: readonly string[]): string[] {
  if (quantities === undefined) return [];
  return names.flatMap((name) => {
    const quantity = memberOf(quantities, name);
    if (quantity === undefined || amount(String(quantity)) % BILLION === 0n) return [];
    return [`${path}[${name}]: fractional byte value "${String(quantity)}" is invalid, must be an integer`];
  });
}

const COMPUTE_RESOURCES = ["cpu", "memory"];

export function containersOf(spec: JsonObject): JsonObject[] {
  return ["initContainers", "containers"].flatMap((list) => (arrayAt(spec, list) ?? []).filter(isObject));
}

/** Returns the QoS class of a Pod, from Pod-level resources or those of its containers. */
export function qosClassOf(spec: JsonObject): string {
  const own = objectAt(spec, "resources");
  const resources = own === undefined ? containersOf(spec).map((container) => objectAt(container, "resources")) : [own];
  const amount = (of: JsonObject | undefined, list: string, name: string) => {
    const value = memberOf(objectAt(of, list), name);
    // Negative quantities are rejected later.
    return value === undefined || value === "0" || String(value).startsWith("-") ? undefined : String(value);
  };
  const hasAny = resources.some((one) =>
    COMPUTE_RESOURCES.some((name) => amount(one, "limits", name) ?? amount(one, "requests", name)),
  );
  if (!hasAny) return "BestEffort";
  const isGuaranteed = resources.every((one) =>
    COMPUTE_RESOURCES.every((name) => {
      const limit = amount(one, "limits", name);
      const request = amount(one, "requests", name);
      return limit !== undefined && request !== undefined && compareQuantities(limit, request) === 0;
    }),
  );
  return isGuaranteed ? "Guaranteed" : "Burstable";
}

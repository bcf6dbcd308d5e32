import { objectsAt } from "../builtin/read-path.js";
import { type JsonObject, type JsonValue, arrayAt, compareText, isObject, objectAt, stringAt } from "../json.js";

/** Prints objects of a type as table rows. */
export interface Printer {
  /** Columns after the name: `Name`, `Name*` for wide output only, `Name:integer` for types other than string. */
  columns: string[];
  /** Returns the cells after the name. */
  cells: (object: JsonObject, now: Date) => JsonValue[];
  /** Returns the first cell. Default: metadata.name */
  name?: (object: JsonObject) => string;
}

/** Returns the names and images of containers, separated by commas. */
export function containerCells(object: JsonObject, path: string): [names: string, images: string] {
  const containers = objectsAt(object, path);
  const join = (key: string) => containers.map((container) => stringAt(container, key) ?? "").join(",");
  return [join("name"), join("image")];
}

/** Formats labels as `a=b,c=d`, sorted; `<none>` if there are none. */
export function formatLabels(labels: JsonValue | undefined): string {
  if (!isObject(labels) || Object.keys(labels).length === 0) return "<none>";
  const keys = Object.keys(labels).sort(compareText);
  return keys.map((key) => `${key}=${String(labels[key])}`).join(",");
}

/** Formats a label selector as in a query; `<none>` if it is empty. */
export function formatSelector(selector: JsonValue | undefined): string {
  if (!isObject(selector)) return "<none>";
  const requirements = Object.entries(objectAt(selector, "matchLabels") ?? {}).map(([key, value]) => ({
    key,
    text: `${key}=${String(value)}`,
  }));
  for (const expression of (arrayAt(selector, "matchExpressions") ?? []).filter(isObject)) {
    const key = stringAt(expression, "key") ?? "";
    const values = (arrayAt(expression, "values") ?? []).map(String).sort(compareText).join(",");
    requirements.push({ key, text: expressionText(key, stringAt(expression, "operator"), values) });
  }
  if (requirements.length === 0) return "<none>";
  requirements.sort((a, b) => compareText(a.key, b.key));
  return requirements.map(({ text }) => text).join(",");
}

function expressionText(key: string, operator: string | undefined, values: string): string {
  if (operator === "In") return `${key} in (${values})`;
  if (operator === "NotIn") return `${key} notin (${values})`;
  return operator === "DoesNotExist" ? `!${key}` : key;
}

/** Joins the first `max` strings and appends the number of the others. */
export function firstOf(texts: string[], options: { max: number; separator: string }): string {
  const shown = texts.slice(0, options.max).join(options.separator);
  return texts.length > options.max ? `${shown} + ${texts.length - options.max} more...` : shown;
}

/** Formats the addresses of a load balancer. */
export function formatLoadBalancer(object: JsonObject): string {
  const ingress = objectsAt(object, "status.loadBalancer.ingress");
  const addresses = ingress.map((one) => stringAt(one, "ip") ?? stringAt(one, "hostname") ?? "");
  return [...new Set(addresses.filter((address) => address !== ""))].sort(compareText).join(",");
}

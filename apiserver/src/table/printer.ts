import { objectsAt } from "../builtin/read-path.js";
import { type JsonObject, type JsonValue, arrayAt, compareText, isObject, objectAt, stringAt } from "../json.js";

/** How the objects of one type are printed. */
export interface Printer {
  /**
   * The columns in order, with the name of the object first: `Name`, `Name*` if it is only shown wide, `Name:integer` if it is not text.
   */
  columns: string[];
  /** Gives the cells after the name. */
  cells: (object: JsonObject, now: Date) => JsonValue[];
  /** Gives the first cell if it is not the object's name. */
  name?: (object: JsonObject) => string;
}

/** Lists the names and images of the containers of a pod template. */
export function containerCells(object: JsonObject, path: string): [names: string, images: string] {
  const containers = objectsAt(object, path);
  const join = (key: string) => containers.map((container) => stringAt(container, key) ?? "").join(",");
  return [join("name"), join("image")];
}

/** Writes labels as `a=b,c=d`, sorted; `<none>` if there are none. */
export function formatLabels(labels: JsonValue | undefined): string {
  if (!isObject(labels) || Object.keys(labels).length === 0) return "<none>";
  const keys = Object.keys(labels).sort(compareText);
  return keys.map((key) => `${key}=${String(labels[key])}`).join(",");
}

/** Writes a label selector as it would stand in a query; `<none>` if it selects everything. */
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

/** Shows the first `max` of several texts and how many more there are. */
export function firstOf(texts: string[], options: { max: number; separator: string }): string {
  const shown = texts.slice(0, options.max).join(options.separator);
  return texts.length > options.max ? `${shown} + ${texts.length - options.max} more...` : shown;
}

/** Writes the addresses of a load balancer. */
export function formatLoadBalancer(object: JsonObject): string {
  const ingress = objectsAt(object, "status.loadBalancer.ingress");
  const addresses = ingress.map((one) => stringAt(one, "ip") ?? stringAt(one, "hostname") ?? "");
  return [...new Set(addresses.filter((address) => address !== ""))].sort(compareText).join(",");
}

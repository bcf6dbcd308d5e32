// Sets of fields as `metadata.managedFields` holds them (FieldsV1), and how an entry gains or loses one.
import { isDeepStrictEqual } from "node:util";

/** A node of FieldsV1: what is owned below a path. */
export interface FieldsV1 {
  readonly [element: string]: FieldsV1;
}

/** The way from the root to a field: elements such as `f:spec` or `k:{"name":"web"}`. */
export type FieldPath = readonly string[];

const SELF = ".";

/** Returns the set with a field, without what is below it. */
export function withField(fields: FieldsV1, [element, ...rest]: FieldPath): FieldsV1 {
  if (element === undefined) return fields;
  const name = findElement(fields, element) ?? element;
  const child = fields[name];
  if (rest.length > 0) {
    // A node without children is a member itself, and stays one.
    const isMember = child !== undefined && Object.keys(child).length === 0;
    return { ...fields, [name]: withField(isMember ? { [SELF]: {} } : (child ?? {}), rest) };
  }
  const isLeaf = child === undefined || Object.keys(child).length === 0;
  return { ...fields, [name]: isLeaf ? {} : { [SELF]: {}, ...child } };
}

/** Returns the set without a field and all that is below it; undefined if nothing is left. */
export function withoutField(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  return changeAt(fields, path, () => undefined);
}

/** Returns the set without a field, but with what is below it; undefined if nothing is left. */
export function withoutMember(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  return changeAt(fields, path, ({ [SELF]: _, ...children }) =>
    Object.keys(children).length === 0 ? undefined : children,
  );
}

function changeAt(
  fields: FieldsV1,
  [element, ...rest]: FieldPath,
  change: (node: FieldsV1) => FieldsV1 | undefined,
): FieldsV1 | undefined {
  const name = element === undefined ? undefined : findElement(fields, element);
  if (name === undefined) return fields;
  const { [name]: child, ...others } = fields;
  const left = rest.length === 0 ? change(child!) : changeAt(child!, rest, change);
  if (left === child) return fields;
  const kept = left === undefined ? others : { ...fields, [name]: left };
  return Object.keys(kept).length === 0 ? undefined : kept;
}

/** Returns all fields of two sets. */
export function unionOf(a: FieldsV1, b: FieldsV1): FieldsV1 {
  const [isLeafOfA, isLeafOfB] = [a, b].map((each) => Object.keys(each).length === 0);
  if (isLeafOfA || isLeafOfB) return isLeafOfA && isLeafOfB ? {} : { [SELF]: {}, ...a, ...b };
  const result: { [element: string]: FieldsV1 } = { ...a };
  for (const [element, child] of Object.entries(b)) {
    const name = findElement(a, element) ?? element;
    const known = a[name];
    result[name] = known === undefined || name === SELF ? child : unionOf(known, child);
  }
  return result;
}

/** Returns what of a set is at a path, or below it; undefined if nothing is. */
export function fieldsAt(fields: FieldsV1, path: FieldPath): FieldsV1 | undefined {
  let node: FieldsV1 | undefined = fields;
  for (const element of path) {
    const name: string | undefined = node && findElement(node, element);
    node = name === undefined ? undefined : node![name];
  }
  return node;
}

/** Writes a path as the API server does in a conflict of an apply, such as `spec.containers[name="web"].image`. */
export function fieldPathText(path: FieldPath): string {
  const texts = path.map((element) => {
    const [kind, rest] = [element.slice(0, 2), element.slice(2)];
    if (kind === "f:") return `.${rest}`;
    if (kind !== "k:") return `[=${rest}]`;
    const keys = Object.entries(JSON.parse(rest) as object).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    return `[${keys.join()}]`;
  });
  return texts.join("").replace(/^\./, "");
}

/** Returns the element of a set that means the same: keys and values are JSON, which may be written in several ways. */
export function findElement(fields: FieldsV1, element: string): string | undefined {
  if (Object.hasOwn(fields, element)) return element;
  const kind = element.slice(0, 2);
  if (kind !== "k:" && kind !== "v:") return undefined;
  const value: unknown = JSON.parse(element.slice(2));
  return Object.keys(fields).find(
    (name) => name.startsWith(kind) && isDeepStrictEqual(JSON.parse(name.slice(2)), value),
  );
}

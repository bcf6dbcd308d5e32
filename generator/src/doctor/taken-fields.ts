// What an object loses once the fields of a former field manager belong to the operator, which no longer states them.

/** A set of fields, as `metadata.managedFields` holds them. */
export interface FieldsV1 {
  readonly [element: string]: FieldsV1;
}

/** The way to a value in an object: names of members and indexes of items. */
export type Path = readonly (string | number)[];

/** A field that goes. */
export interface TakenField {
  readonly path: Path;
  /** The elements of the set that lead to it. */
  readonly elements: readonly string[];
  /** As the API server writes it: `spec.containers[name="web"].image`. */
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
 * Returns the fields of an object that a former manager owns, and nobody else: as server-side apply removes them when the manager to whom they
 * belong then states them no more. Items of one list come from the last to the first.
 */
export function takenFields(object: object, taken: FieldsV1, others: readonly FieldsV1[]): TakenField[] {
  return takenBelow({ value: object, taken, others, path: [], elements: [], text: "" });
}

/** Returns the value to which elements of a set lead in an object; undefined if there is none. */
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
    // An item of a list belongs to the managers that own the item itself, a field to all that own something in it.
    const isField = element.startsWith("f:");
    const isShared = isField ? owners.length > 0 : owners.some(isMember);
    // Each label, annotation, finalizer and owner is named.
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
  // A default of a key may stand in the object alone.
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
  // A name with dots would look like several.
  if (!/^[\w-]+$/.test(rest)) return `[${JSON.stringify(rest)}]`;
  return before === "" ? rest : `.${rest}`;
}

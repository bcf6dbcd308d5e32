// What an apply empties. Where all entries of a map or all items of a list were applied under one name, and that name applies the map or list
// without any, kube-apiserver 1.36 removes a list as a whole, and makes null of a map, which it rejects (422) unless the schema of a custom
// resource allows null. What is not there can be applied empty. So what is to be empty in the end takes one apply more.
import { isApiError, type ApiError } from "../base/errors.js";

/** Returns what is to be applied first, if an apply failed because it empties fields; undefined if it failed for another reason. */
export function withoutEmptied<Body extends object>(body: Body, error: unknown): Body | undefined {
  if (!isApiError(error, 422)) return undefined;
  const nulled = new Set(error.causes.filter(isAboutNull).map(({ field = "" }) => withoutIndexes(field)));
  const search: Search = { nulled, wasFound: false };
  const reduced = nulled.size === 0 ? body : reduce(body, "", search);
  return search.wasFound ? (reduced as Body) : undefined;
}

/** Tells whether an apply left out what was applied empty; of what is in lists nothing is told. */
export function lacksEmptied(body: object, stored: object): boolean {
  return Object.entries(body).some(([name, child]) => {
    if (Array.isArray(child) ? child.length > 0 : typeof child !== "object" || child === null) return false;
    const kept: unknown = (stored as { [name: string]: unknown })[name];
    return typeof kept !== "object" || kept === null ? hasEmpty(child) : lacksEmptied(child as object, kept);
  });
}

function hasEmpty(value: unknown): boolean {
  if (isEmpty(value)) return true;
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).some(hasEmpty);
}

interface Search {
  readonly nulled: ReadonlySet<string>;
  wasFound: boolean;
}

function reduce(value: unknown, path: string, search: Search): unknown {
  if (Array.isArray(value)) return value.map((item) => reduce(item, path, search));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).flatMap(([name, child]) => {
    const childPath = path === "" ? name : `${path}.${name}`;
    if (!isEmpty(child) || !search.nulled.has(childPath)) return [[name, reduce(child, childPath, search)]];
    search.wasFound = true;
    return [];
  });
  return Object.fromEntries(kept);
}

function isAboutNull({ message = "" }: ApiError["causes"][number]): boolean {
  return message.includes('Invalid value: "null"');
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

// Which item it is differs between what is applied and what comes of it.
function withoutIndexes(field: string): string {
  return field.replace(/\[[^\]]*\]/g, "");
}

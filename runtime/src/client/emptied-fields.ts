// What an apply empties. Where all entries of a map or all items of a list were applied under one name, and that name applies the map or list
// without any, kube-apiserver 1.36 removes a list as a whole, and makes null of a map, which it rejects (422) unless the schema of a custom
// resource allows null. What is not there can be applied empty. So what is to be empty in the end takes one apply more.
import { isApiError } from "../base/errors.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { Applied, WriteRequest } from "./write-request.js";

/** Applies an object of a custom resource by `send`, and once more if what is to be empty had to be left out at first. */
export async function applyEmptying<Resource extends KubernetesObject>(
  definition: ResourceDefinition,
  request: WriteRequest,
  send: (request: WriteRequest) => Promise<Applied<Resource>>,
): Promise<Applied<Resource>> {
  let first: Applied<Resource>;
  try {
    first = await send(request);
    if (!lacksEmptied(writtenFields(definition, request), first.object)) return first;
  } catch (error) {
    const body = withoutEmptied(request.body, error);
    if (body === undefined) throw error;
    // The first error says what is wrong with what was meant.
    first = await send({ ...request, body }).catch(() => Promise.reject(error));
  }
  const { metadata } = request.body as KubernetesObject;
  const { resourceVersion } = first.object.metadata;
  const isVersioned = metadata?.resourceVersion !== undefined;
  // What states a version states that of what was applied first.
  const body = isVersioned ? { ...request.body, metadata: { ...metadata, resourceVersion } } : request.body;
  const second = await send({ ...request, body });
  return { ...second, wasCreated: first.wasCreated };
}

// What the server takes, but for the metadata, of which it leaves out what is empty.
function writtenFields({ hasStatusSubresource }: ResourceDefinition, { body, subresource }: WriteRequest): object {
  const { metadata: _metadata, status, ...fields } = body as KubernetesObject & { status?: unknown };
  if (subresource === "status") return { status };
  return hasStatusSubresource ? fields : { ...fields, status };
}

/** Returns what is to be applied first, if an apply failed because it empties fields; undefined if it failed for another reason. */
function withoutEmptied(body: object, error: unknown): object | undefined {
  if (!isApiError(error, 422)) return undefined;
  const aboutNull = error.causes.filter(({ message = "" }) => message.includes('Invalid value: "null"'));
  // Which item of a list it is differs between what is applied and what comes of it.
  const nulled = new Set(aboutNull.map(({ field = "" }) => field.replace(/\[[^\]]*\]/g, "")));
  let wasFound = false;
  const reduce = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => reduce(item, path));
    if (!isObject(value)) return value;
    const kept = Object.entries(value).flatMap(([name, child]) => {
      const childPath = path === "" ? name : `${path}.${name}`;
      if (!isEmpty(child) || !nulled.has(childPath)) return [[name, reduce(child, childPath)]];
      wasFound = true;
      return [];
    });
    return Object.fromEntries(kept);
  };
  const reduced = reduce(body, "") as object;
  return wasFound ? reduced : undefined;
}

/** Tells whether the server left out what was applied empty; of what is in lists nothing is told. */
function lacksEmptied(applied: unknown, stored: unknown): boolean {
  if (isEmpty(applied)) return !isObject(stored);
  if (!isObject(applied) || Array.isArray(applied)) return false;
  const kept = isObject(stored) ? stored : {};
  return Object.entries(applied).some(([name, child]) => lacksEmptied(child, kept[name]));
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === "object" && value !== null;
}

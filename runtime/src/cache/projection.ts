import type { KubernetesObject } from "../base/kubernetes-object.js";

// Metadata that every cached object keeps, because caches, mappers and filters need it and the types promise it: the identity, the owners, and the
// deletion state.
const IDENTITY = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "ownerReferences",
];

/** The part of a value to keep: all of it, or these fields. */
type Kept = "whole" | Map<string, Kept>;

/**
 * Compiles field paths such as `status.phase`, `spec.containers[].image` or `metadata.labels["example.com/app"]` into a function that keeps only the
 * values at these paths. Values that are kept whole are not copied. `apiVersion`, `kind` and the metadata are always kept; if a path begins with
 * `metadata`, only the identity, the owners and the deletion state of the metadata are kept in addition to the path. A path through a list, with or
 * without `[]`, applies to each item. Throws if a path is invalid.
 */
export function compileProjection(paths: readonly string[]): (object: KubernetesObject) => KubernetesObject {
  const root = new Map<string, Kept>();
  const segments = paths.map(parsePath);
  const isCut = segments.some(([first]) => first === "metadata");
  const metadata = isCut ? IDENTITY.map((name) => ["metadata", name]) : [["metadata"]];
  for (const path of [["apiVersion"], ["kind"], ...metadata, ...segments]) keep(root, path);
  return (object) => project(object, root) as KubernetesObject;
}

const SEGMENT = /\.?([^.[\]"]+)|\["((?:[^"\\]|\\.)+)"\]|\[\]/y;

function parsePath(path: string): string[] {
  const names: string[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < path.length) {
    const start = SEGMENT.lastIndex;
    const [text, name, quoted] = SEGMENT.exec(path) ?? [];
    if (text === undefined || (start === 0 && (text.startsWith(".") || text === "[]"))) throw noPath(path);
    const field = name ?? quoted?.replace(/\\(.)/g, "$1");
    if (field !== undefined) names.push(field);
  }
  if (names.length === 0) throw noPath(path);
  return names;
}

function noPath(path: string): Error {
  return new Error(
    `"${path}" is not a valid field path: use the form status.phase, spec.containers[].image or metadata.labels["example.com/app"]`,
  );
}

function keep(root: Map<string, Kept>, path: readonly string[]): void {
  let fields = root;
  for (const [index, name] of path.entries()) {
    const kept = fields.get(name);
    if (kept === "whole") return;
    const inner = kept ?? new Map<string, Kept>();
    fields.set(name, index === path.length - 1 ? "whole" : inner);
    fields = inner;
  }
}

function project(value: unknown, kept: Kept): unknown {
  if (kept === "whole" || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => project(item, kept));
  const part: { [name: string]: unknown } = {};
  for (const [name, inner] of kept)
    if (Object.hasOwn(value, name)) part[name] = project((value as { [name: string]: unknown })[name], inner);
  return part;
}

/** What a path below /api or /apis means. */
export interface ResourcePath {
  group: string;
  version: string;
  namespace?: string;
  plural: string;
  name?: string;
  subresource?: string;
  /** True below the old `/watch/` prefix, where a GET is a watch. */
  isWatchPath: boolean;
  /** The object that such a path ends with: the watch is of that alone. */
  watchedName?: string;
}

/** Parses a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`; undefined when it is of another form. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = path.split("/");
  if (segments.length > 3 && segments.at(-1) === "") segments.pop();
  // The path begins with a slash, so the first segment is empty.
  const first = segments[1] === "api" ? 2 : segments[1] === "apis" ? 3 : undefined;
  if (first === undefined || segments.indexOf("", 1) > 0) return undefined;
  const below = segments.slice(first + 1);
  const version = segments[first];
  if (version === undefined) return undefined;
  return parseBelow({ group: first === 3 ? (segments[2] as string) : "", version }, below);
}

function parseBelow(on: { group: string; version: string }, segments: string[]): ResourcePath | undefined {
  const { group, version } = on;
  const isWatchPath = segments[0] === "watch" && segments.length > 1;
  const [first, second, third, ...more] = isWatchPath ? segments.slice(1) : segments;
  if (first === undefined) return undefined;
  if (first === "namespaces" && second !== undefined && third !== undefined && !isOfNamespace(third, more)) {
    const path: ResourcePath = { group, version, namespace: decoded(second), plural: third, isWatchPath };
    return withObject(path, more);
  }
  const rest = third === undefined ? [] : [third, ...more];
  return withObject({ group, version, plural: first, isWatchPath }, second === undefined ? [] : [second, ...rest]);
}

// These belong to the namespace itself and are not resources inside it.
function isOfNamespace(segment: string, more: string[]): boolean {
  return more.length === 0 && (segment === "status" || segment === "finalize");
}

function withObject(path: ResourcePath, segments: string[]): ResourcePath {
  const [name, ...subresource] = segments;
  if (name !== undefined && path.isWatchPath && subresource.length === 0) path.watchedName = decoded(name);
  else if (name !== undefined) path.name = decoded(name);
  // What is behind a proxy has paths of its own.
  if (subresource.length > 0) path.subresource = hasProxy(path, subresource) ? "proxy" : subresource.join("/");
  return path;
}

function hasProxy({ group, plural }: ResourcePath, [first]: string[]): boolean {
  return first === "proxy" && group === "" && ["pods", "services", "nodes"].includes(plural);
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

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
}

/** Parses a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`; undefined when it is of another form. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = path.split("/").slice(1);
  if (segments.some((segment) => segment === "")) return undefined;
  const decoded = segments.map(decodeSegment);
  const [prefix, ...rest] = decoded;
  if (prefix === "api") return parseBelow({ group: "", version: rest[0] ?? "" }, rest.slice(1));
  if (prefix === "apis") return parseBelow({ group: rest[0] ?? "", version: rest[1] ?? "" }, rest.slice(2));
  return undefined;
}

// These belong to the namespace itself and are not resources inside it.
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);

function parseBelow(version: { group: string; version: string }, segments: string[]): ResourcePath | undefined {
  const isWatchPath = segments[0] === "watch" && segments.length > 1;
  const [first, second, third, ...more] = isWatchPath ? segments.slice(1) : segments;
  if (first === undefined) return undefined;
  const isInside =
    first === "namespaces" && third !== undefined && !(NAMESPACE_SUBRESOURCES.has(third) && more.length === 0);
  const [plural, name, ...subresource] = isInside ? [third, ...more] : [first, second, third, ...more];
  const rest = subresource.filter((segment) => segment !== undefined);
  return {
    ...version,
    ...(isInside ? { namespace: second as string } : {}),
    plural,
    ...(name === undefined ? {} : { name }),
    ...(rest.length === 0 ? {} : { subresource: rest.join("/") }),
    isWatchPath,
  };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

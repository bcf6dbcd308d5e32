// What a real API server wrote down about the requests of a service account, and which rules of roles these needed.
import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";

/** One request. */
export interface AuditedRequest {
  /** As RBAC names it. */
  readonly verb: string;
  readonly path: string;
  readonly code: number;
  readonly isForbidden: boolean;
  readonly group: string;
  /** The plural of the kind, with the subresource after a slash; empty for paths that are no resources. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: { readonly [name: string]: string };
}

/** Reads the requests of a service account, in order. */
export async function readAuditLog(path: string, user: string): Promise<AuditedRequest[]> {
  const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line.startsWith("{"));
  return lines
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ user: { username } }) => username === user)
    .map(({ verb, requestURI, objectRef = {}, responseStatus, annotations }) => {
      const { apiGroup = "", resource = "", subresource, namespace = "", name = "" } = objectRef;
      return {
        ...{ verb, path: requestURI, code: responseStatus?.code ?? 0, group: apiGroup, namespace, name },
        isForbidden: annotations?.["authorization.k8s.io/decision"] === "forbid" || responseStatus?.code === 403,
        resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      };
    });
}

/** One right of a role: a verb on a kind, or on one object of it. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  /** Everywhere if absent. */
  readonly namespace?: string;
  /** Any if absent. */
  readonly name?: string;
}

interface RoleDocument {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** Returns every right of the roles in a YAML text, each for itself. */
export function rightsIn(text: string): Right[] {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as RoleDocument | null);
  return documents.flatMap((document) => {
    if (document === null) return [];
    const { kind, metadata, rules = [] } = document;
    const place = kind === "Role" ? { namespace: metadata.namespace ?? "" } : {};
    return rules.flatMap(({ apiGroups = [], resources = [], resourceNames = [undefined], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.flatMap((verb) =>
            resourceNames.map((name) => ({ group, resource, verb, ...place, ...(name !== undefined && { name }) })),
          ),
        ),
      ),
    );
  });
}

/** Tells whether a request needed a right. */
export function needs(request: AuditedRequest, right: Right): boolean {
  const { group, resource, verb, namespace, name } = right;
  if (request.group !== group || request.resource !== resource) return false;
  if (namespace !== undefined && request.namespace !== namespace) return false;
  if (name !== undefined && request.name !== name) return false;
  // An apply that creates an object needs both verbs.
  return request.verb === verb || (verb === "create" && request.verb === "patch" && request.code === 201);
}

/** Renders a right as text: `get leases.coordination.k8s.io "main" in home`. */
export function describeRight({ group, resource, verb, namespace, name }: Right): string {
  const kind = group === "" ? resource : `${resource}.${group}`;
  return `${verb} ${kind}${name === undefined ? "" : ` "${name}"`}${namespace === undefined ? "" : ` in ${namespace}`}`;
}

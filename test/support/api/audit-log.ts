// Reads the audit log of a real API server, and determines the RBAC rules that the requests of a service account need.
import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";

/** A request in the audit log. */
export interface AuditedRequest {
  /** The RBAC verb. */
  readonly verb: string;
  readonly path: string;
  readonly code: number;
  readonly isForbidden: boolean;
  readonly group: string;
  /** The plural name, followed by a slash and the subresource if any; "" for a non-resource URL. */
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

/** Reads the requests of a user in order. */
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

/** A permission of a role: a verb on a resource, or on one object. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  /** Undefined for all namespaces. */
  readonly namespace?: string;
  /** Undefined for all names. */
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

/** Returns the individual permissions of the roles in a YAML document. */
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

/** Returns whether a request requires a permission. */
export function needs(request: AuditedRequest, right: Right): boolean {
  const { group, resource, verb, namespace, name } = right;
  if (request.group !== group || request.resource !== resource) return false;
  if (namespace !== undefined && request.namespace !== namespace) return false;
  if (name !== undefined && request.name !== name) return false;
  // Server-side apply requires both verbs if it creates an object.
  return request.verb === verb || (verb === "create" && request.verb === "patch" && request.code === 201);
}

/** Formats a permission: `get leases.coordination.k8s.io "main" in home`. */
export function describeRight({ group, resource, verb, namespace, name }: Right): string {
  const kind = group === "" ? resource : `${resource}.${group}`;
  return `${verb} ${kind}${name === undefined ? "" : ` "${name}"`}${namespace === undefined ? "" : ` in ${namespace}`}`;
}

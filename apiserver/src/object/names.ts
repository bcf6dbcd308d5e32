import { exactAddressProblems } from "../builtin/rules/address-syntax.js";
import { pathSegmentProblems, subdomainProblems } from "../builtin/rules/name-syntax.js";
import type { ServedType } from "../builtin/served-type.js";
import { quote } from "../errors/go-format.js";
import { type KindRef, type ResourceRef, badRequest } from "../errors/status-error.js";

/** Returns the key of an object in the store of its resource. */
export function keyOf(object: { namespace: string | undefined; name: string }): string {
  return object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`;
}

/** Returns the prefix of the keys in a namespace, or of all keys. */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? "" : `${namespace}/`;
}

/** Returns the `apiVersion` of a type. */
export function apiVersionOf(type: { group: string; version: string }): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** Returns the group and the version in an `apiVersion`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** Returns how most failures name an object: by its resource. */
export function resourceRefOf(type: ServedType, name: string): ResourceRef {
  return { resource: type.plural, group: type.group, name };
}

/** Returns how failed validation names an object: by its kind. Events of both groups are of the core. */
export function kindRefOf({ kind, group }: ServedType, name: string): KindRef {
  return { kind, group: group === "events.k8s.io" ? "" : group, name };
}

// Where etcd keeps what has another name there; what came later than the first types is kept by group, too.
const STORED_AS: { readonly [plural: string]: string } = {
  replicationcontrollers: "controllers",
  endpoints: "services/endpoints",
  nodes: "minions",
  services: "services/specs",
  ingresses: "ingress",
  customresourcedefinitions: "apiextensions.k8s.io/customresourcedefinitions",
  apiservices: "apiregistration.k8s.io/apiservices",
};

/** Gives the key of an object in etcd, which messages show; a dry run shows it without its first part. */
export function storageKeyOf(type: ServedType, key: string, { isDryRun }: { isDryRun: boolean }): string {
  const own = type.custom === undefined ? (STORED_AS[type.plural] ?? type.plural) : `${type.group}/${type.plural}`;
  return `${isDryRun ? "" : "/registry"}/${own}/${key}`;
}

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const labelPattern = new RegExp(`^${LABEL}$`);

/** How a type restricts the names of its objects. */
export type NameRule = "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";

/** Checks a name and returns what is wrong with it; the base of a generated name may end in a dash. */
export function checkName(rule: NameRule, name: string, { isPrefix = false } = {}): string[] {
  // Of a long name only what was generated is looked at, and it is counted in bytes.
  if (rule === "long-name")
    return isPrefix ? [] : subdomainProblems(name).map((problem) => problem.replace(/ characters$/, " bytes"));
  if (rule === "path-segment") return pathSegmentProblems(name, { isPrefix });
  // As Kubernetes has it, one letter stands for the dash at the end of a prefix and for what is before the dash.
  const tried = isPrefix ? name.replace(/.-$/s, "a") : name;
  // Labels count bytes, names count characters.
  if (rule === "address") return exactAddressProblems(tried);
  if (rule === "subdomain") return subdomainProblems(tried);
  return checkLabel(tried);
}

function checkLabel(text: string): string[] {
  const isDotted = text.includes(".") && subdomainProblems(text).length === 0;
  return [
    ...(text.length > 63 ? ["must be no more than 63 characters"] : []),
    ...(labelPattern.test(text) ? [] : [isDotted ? "must not contain dots" : LABEL_TEXT]),
  ];
}

/** Fails for the name of a path that no object can have. */
export function checkPathName(name: string): void {
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) throw badRequest(`Name parameter invalid: ${quote(name)}: ${problems.join(";")}`);
}

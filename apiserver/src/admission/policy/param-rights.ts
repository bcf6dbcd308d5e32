// Authorizes params of policies: the result of a policy discloses the content of its params, so users who set a paramKind or paramRef need permission
// to read the params.
import { forbiddenError } from "../../errors/field-error.js";
import { invalid } from "../../errors/status-error.js";
import type { Authorizer } from "../../identity/authorizer.js";
import { MASTERS, type UserInfo } from "../../identity/user.js";
import { type JsonObject, deepEqual, objectAt, stringAt } from "../../json.js";
import { kindRefOf, metadataOf, parseApiVersion } from "../../object/object-meta.js";
import type { Registry } from "../../registry/registry.js";
import type { AdmissionPlugin, AdmittedWrite } from "../admission.js";
import { resourceOf } from "./params.js";

const GROUP = "admissionregistration.k8s.io";
// The plural of the policies, by the plural of their bindings.
const BOUND: { readonly [plural: string]: string } = {
  validatingadmissionpolicybindings: "validatingadmissionpolicies",
  mutatingadmissionpolicybindings: "mutatingadmissionpolicies",
};

/** Requires that the user who writes a policy or binding may read the params that it references. */
export function paramRights(authorizer: Authorizer): AdmissionPlugin {
  return {
    resources: [...Object.keys(BOUND), ...Object.values(BOUND)].map((plural) => `${plural}.${GROUP}`),
    validate: (write) => checkParamRights(authorizer, write),
  };
}

function checkParamRights(authorizer: Authorizer, write: AdmittedWrite): void {
  const { context, object, oldObject, subresource } = write;
  const { type } = context.resource;
  if (object === undefined || subresource !== "" || context.user.groups.includes(MASTERS)) return;
  const member = Object.hasOwn(BOUND, type.plural) ? "paramRef" : "paramKind";
  const params = objectAt(objectAt(object, "spec"), member);
  if (params === undefined || isUnchanged(member, object, oldObject)) return;
  const problem =
    member === "paramKind" ? problemOfKind(authorizer, write, params) : problemOfRef(authorizer, write, params);
  if (problem === undefined) return;
  const name = stringAt(metadataOf(object), "name") ?? "";
  throw invalid(kindRefOf(type, name), [forbiddenError(`spec.${member}`, problem)]);
}

// Changing the policyName of a binding authorizes its paramRef again.
function isUnchanged(member: string, object: JsonObject, oldObject: JsonObject | undefined): boolean {
  const members = member === "paramKind" ? [member] : [member, "policyName"];
  const [spec, old] = [objectAt(object, "spec"), objectAt(oldObject, "spec")];
  return oldObject !== undefined && members.every((each) => deepEqual(spec?.[each] ?? null, old?.[each] ?? null));
}

interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

function paramKindOf(params: JsonObject): ParamKind {
  return { apiVersion: stringAt(params, "apiVersion") ?? "", kind: stringAt(params, "kind") ?? "" };
}

// Without a known resource, the user needs the permission for all resources.
function askedOf(paramKind: ParamKind | undefined, registry: Registry): { group: string; resource: string } {
  if (paramKind === undefined) return { group: "*", resource: "*" };
  const { group } = parseApiVersion(paramKind.apiVersion);
  return { group, resource: resourceOf(paramKind, registry)?.type.plural ?? "*" };
}

function problemOfKind(authorizer: Authorizer, { context }: AdmittedWrite, params: JsonObject): string | undefined {
  const { registry, user } = context;
  const paramKind = paramKindOf(params);
  const asked = { ...askedOf(paramKind, registry), verb: "get", subresource: "", namespace: "*", name: "*" };
  if (authorizer.decide(user, asked).allowed) return undefined;
  const { kind, apiVersion } = paramKind;
  return `user ${goUserOf(user)} must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`;
}

function problemOfRef(
  authorizer: Authorizer,
  { context, object }: AdmittedWrite,
  params: JsonObject,
): string | undefined {
  const { registry, resource, user } = context;
  const policyName = stringAt(objectAt(object, "spec"), "policyName") ?? "";
  const { group, version, plural } = resource.type;
  const policies = registry.find({ group, version, plural: BOUND[plural] ?? "" });
  const policy = policies?.store.get(policyName)?.object;
  const kind = objectAt(objectAt(policy, "spec"), "paramKind");
  const paramKind = kind === undefined ? undefined : paramKindOf(kind);
  const [name, namespace] = [stringAt(params, "name") ?? "", stringAt(params, "namespace") ?? ""];
  const verb = name === "" ? "list" : "get";
  const asked = { ...askedOf(paramKind, registry), verb, subresource: "", namespace, name };
  if (authorizer.decide(user, asked).allowed) return undefined;
  const [who, anything] = [`user ${goUserOf(user)}`, `"${verb}" permission for all groups, versions and resources`];
  if (policy === undefined)
    return `unable to get policy ${policyName} to determine minimum required permissions and ${who} does not have ${anything}`;
  if (paramKind !== undefined && resourceOf(paramKind, registry) === undefined)
    return `unable to resolve paramKind &{${paramKind.apiVersion} ${paramKind.kind}} to determine minimum required permissions and ${who} does not have ${anything}`;
  return `${who} does not have "${verb}" permission on the object referenced by paramRef`;
}

// Formats a user as Go prints the struct.
function goUserOf({ username, uid = "", groups, extra = {} }: UserInfo): string {
  const members = Object.keys(extra)
    .sort()
    .map((key) => `${key}:[${(extra[key] ?? []).join(" ")}]`);
  return `&{${username} ${uid} [${groups.join(" ")}] map[${members.join(" ")}]}`;
}

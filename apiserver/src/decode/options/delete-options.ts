import { invalidError, notSupportedError, type FieldError } from "../../errors/field-error.js";
import { goTypeOf } from "../../errors/go-format.js";
import { badRequest } from "../../errors/status-error.js";
import { unregisteredKind } from "../../errors/unregistered.js";
import { arrayAt, memberOf, objectAt, stringAt, type JsonObject } from "../../json.js";
import type { PropagationPolicy } from "../../object/finalizers.js";
import { isTrue } from "./query-boolean.js";
import { checkDryRun, invalidOptions } from "./write-options.js";

/** What a DELETE says besides what to delete. */
export interface DeleteOptions {
  isDryRun: boolean;
  gracePeriodSeconds: number | undefined;
  propagation: PropagationPolicy | undefined;
  uid: string | undefined;
  resourceVersion: string | undefined;
  /** The options that were given, in the form of an object. */
  given: JsonObject;
}

const POLICIES = ["Foreground", "Background", "Orphan"] as const;

/** Parses the options of a DELETE from its body or, without one, from its query. */
export function parseDeleteOptions(body: JsonObject | undefined, query: URLSearchParams): DeleteOptions {
  const given = body === undefined ? optionsOfQuery(query) : checkedBody(body);
  if (body !== undefined) checkTypes(body);
  const dryRun = (arrayAt(given, "dryRun") ?? []).map(String);
  const policy = stringAt(given, "propagationPolicy");
  const orphans = memberOf(given, "orphanDependents");
  const errors = [...checkPolicy(policy, typeof orphans === "boolean"), ...checkDryRun(dryRun)];
  if (errors.length > 0) throw invalidOptions("DeleteOptions", errors);
  const preconditions = objectAt(given, "preconditions");
  const grace = memberOf(given, "gracePeriodSeconds");
  return {
    isDryRun: dryRun.length > 0,
    gracePeriodSeconds: typeof grace === "number" ? (grace < 0 ? 1 : grace) : undefined,
    propagation:
      typeof orphans === "boolean" ? (orphans ? "Orphan" : "Background") : POLICIES.find((known) => known === policy),
    uid: stringAt(preconditions, "uid"),
    resourceVersion: stringAt(preconditions, "resourceVersion"),
    given,
  };
}

function optionsOfQuery(query: URLSearchParams): JsonObject {
  const options: JsonObject = {};
  const grace = query.get("gracePeriodSeconds");
  if (grace !== null) options["gracePeriodSeconds"] = parseInteger(grace);
  const policy = query.get("propagationPolicy");
  if (policy !== null) options["propagationPolicy"] = policy;
  const orphans = query.get("orphanDependents");
  if (orphans !== null) options["orphanDependents"] = isTrue(orphans);
  if (query.has("dryRun")) options["dryRun"] = query.getAll("dryRun");
  const preconditions = ["uid", "resourceVersion"].flatMap((name) => [[name, query.get(name) ?? ""] as const]);
  const asked = preconditions.filter(([, value]) => value !== "");
  if (asked.length > 0) options["preconditions"] = Object.fromEntries(asked);
  return options;
}

function checkedBody(body: JsonObject): JsonObject {
  const kind = stringAt(body, "kind") ?? "DeleteOptions";
  if (kind === "DeleteOptions") return body;
  const version = stringAt(body, "apiVersion") ?? "meta.k8s.io/v1";
  throw badRequest(unregisteredKind(kind, version));
}

// What no value of its own type fits.
const GO_TYPES: Record<string, [json: "boolean" | "number" | "string", go: string]> = {
  gracePeriodSeconds: ["number", "int64"],
  orphanDependents: ["boolean", "bool"],
  propagationPolicy: ["string", "v1.DeletionPropagation"],
};

function checkTypes(body: JsonObject): void {
  for (const [field, value] of Object.entries(body)) {
    const [json, go] = (Object.hasOwn(GO_TYPES, field) ? GO_TYPES[field] : undefined) ?? [];
    if (json === undefined || value === null || typeof value === json) continue;
    throw badRequest(
      `json: cannot unmarshal ${goTypeOf(value)} into Go struct field DeleteOptions.${field} of type ${go}`,
    );
  }
}

function checkPolicy(policy: string | undefined, hasOrphans: boolean): FieldError[] {
  if (policy === undefined) return [];
  const isKnown = (POLICIES as readonly string[]).includes(policy);
  const detail = "orphanDependents and deletionPropagation cannot be both set";
  return [
    ...(hasOrphans ? [invalidError("propagationPolicy", policy, detail)] : []),
    ...(isKnown ? [] : [notSupportedError("propagationPolicy", policy, [...POLICIES, "nil"])]),
  ];
}

/** Parses a decimal number of a query. */
export function parseInteger(text: string): number {
  const isInteger = /^[+-]?\d+$/.test(text);
  if (isInteger && BigInt.asIntN(64, BigInt(text)) === BigInt(text)) return Number(text);
  const problem = isInteger ? "value out of range" : "invalid syntax";
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${problem}`);
}

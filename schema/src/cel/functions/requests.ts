// The variables of a policy, and the Kubernetes CEL library for authorization checks.
import type { CelMap, CelValue } from "@bufbuild/cel";
import type { CelInput } from "../adapt-value.js";
import { fieldOf, kindOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

/** An authorization check: a verb on a non-resource path, or on a resource. */
export type AccessQuestion =
  | { readonly user: string | undefined; readonly verb: string; readonly path: string }
  | {
      /** The user name of the service account to check. Default: the user of the request */
      readonly user: string | undefined;
      readonly verb: string;
      readonly group: string;
      readonly resource: string;
      readonly subresource: string;
      readonly namespace: string;
      readonly name: string;
    };

/** The context in which expressions about a request are evaluated. */
export interface RequestSurroundings {
  /** Returns the value of a variable of the policy; throws if its expression fails. */
  readonly variable: (name: string) => CelValue;
  readonly authorize: (question: AccessQuestion) => { readonly allowed: boolean; readonly reason: string };
}

let current: RequestSurroundings | undefined;

/** Runs `evaluate` with the given context, and restores the previous one afterwards. */
export function withSurroundings<Result>(surroundings: RequestSurroundings, evaluate: () => Result): Result {
  const before = current;
  current = surroundings;
  try {
    return evaluate();
  } finally {
    current = before;
  }
}

const RESOURCE = ["user", "group", "resource", "subresource", "namespace", "name"] as const;

/** The functions for `variables` and `authorizer`. */
export const requestFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, DYN, MAP } = typesOf(library);
  const around = (): RequestSurroundings => {
    if (current === undefined)
      throw new Error("no such attribute: variables and authorizer exist in admission policies only");
    return current;
  };
  const questionOf = (value: CelMap): Record<(typeof RESOURCE)[number], string> => {
    const entries = RESOURCE.map((name) => [name, fieldOf<string>(value, "resourceCheck", name)]);
    return Object.fromEntries(entries) as Record<(typeof RESOURCE)[number], string>;
  };
  const narrowed = (name: (typeof RESOURCE)[number]) =>
    celMethod(name, MAP, [STRING], MAP, function (text) {
      return valueOfKind(library, "resourceCheck", { ...questionOf(this), [name]: text });
    });
  const groupCheck = (value: CelMap, group: string) =>
    valueOfKind(library, "groupCheck", { user: fieldOf<string>(value, "authorizer", "user"), group });
  const userOf = (user: string) => (user === "" ? undefined : user);
  return [
    celFunc("@variable", [STRING], DYN, (name) => around().variable(name) as CelInput),
    celMethod("serviceAccount", MAP, [STRING, STRING], MAP, function (namespace, name) {
      fieldOf(this, "authorizer", "user");
      return authorizerOf(library, `system:serviceaccount:${namespace}:${name}`);
    }),
    celMethod("path", MAP, [STRING], MAP, function (path) {
      return valueOfKind(library, "pathCheck", { user: fieldOf<string>(this, "authorizer", "user"), path });
    }),
    celMethod("group", MAP, [STRING], MAP, function (group) {
      return groupCheck(this, group);
    }),
    celMethod("resource", MAP, [STRING], MAP, function (resource) {
      const [user, group] = [fieldOf<string>(this, "groupCheck", "user"), fieldOf<string>(this, "groupCheck", "group")];
      return resourceCheckOf(library, { user, group, resource, subresource: "", namespace: "", name: "" });
    }),
    ...(["subresource", "namespace", "name"] as const).map(narrowed),
    // RBAC ignores field and label selectors.
    ...["fieldSelector", "labelSelector"].map((name) =>
      celMethod(name, MAP, [STRING], MAP, function () {
        return valueOfKind(library, "resourceCheck", questionOf(this));
      }),
    ),
    celMethod("check", MAP, [STRING], MAP, function (verb) {
      const decision =
        kindOf(this) === "pathCheck"
          ? { user: fieldOf<string>(this, "pathCheck", "user"), path: fieldOf<string>(this, "pathCheck", "path") }
          : questionOf(this);
      const { allowed, reason } = around().authorize({ ...decision, user: userOf(decision.user), verb });
      return valueOfKind(library, "decision", { allowed, reason });
    }),
    celMethod("allowed", MAP, [], BOOL, function () {
      return fieldOf<boolean>(this, "decision", "allowed");
    }),
    celMethod("reason", MAP, [], STRING, function () {
      return fieldOf<string>(this, "decision", "reason");
    }),
    celMethod("errored", MAP, [], BOOL, function () {
      fieldOf(this, "decision", "allowed");
      return false;
    }),
    celMethod("error", MAP, [], STRING, function () {
      fieldOf(this, "decision", "allowed");
      return "";
    }),
  ];
};

/** Returns the value of `authorizer`. With `requested` it includes `requestResource`. */
export function authorizerOf(
  library: Parameters<FunctionsOf>[0],
  user: string,
  requested?: Readonly<Record<(typeof RESOURCE)[number], string>>,
): CelMap {
  const fields: [string, CelInput][] = [
    ["@kind", "authorizer"],
    ["user", user],
  ];
  if (requested !== undefined) fields.push(["requestResource", resourceCheckOf(library, requested)]);
  return library.celMap(new Map(fields));
}

function resourceCheckOf(
  library: Parameters<FunctionsOf>[0],
  fields: Readonly<Record<(typeof RESOURCE)[number], string>>,
): CelMap {
  return valueOfKind(library, "resourceCheck", { ...fields });
}

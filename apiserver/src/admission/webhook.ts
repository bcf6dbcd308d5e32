import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { type MatchCondition, matchConditionsOf } from "./policy/match-conditions.js";

/** One webhook of a configuration; https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ */
export interface Webhook {
  name: string;
  clientConfig: JsonObject;
  rules: readonly JsonObject[];
  /** Whether a call that fails refuses the write. */
  failurePolicy: "Fail" | "Ignore";
  /** Whether writes in other versions of a resource count. */
  matchPolicy: "Exact" | "Equivalent";
  namespaceSelector: JsonObject;
  objectSelector: JsonObject;
  /** Whether it is asked again when a later webhook changed the object. */
  reinvocationPolicy: "Never" | "IfNeeded";
  timeoutSeconds: number;
  /** In CEL; all have to hold, or the webhook is not asked. */
  matchConditions: readonly MatchCondition[];
}

/** Reads the webhooks of a configuration that the server has stored, and so completed and checked. */
export function webhooksOf(configuration: JsonObject): Webhook[] {
  return (arrayAt(configuration, "webhooks") ?? []).filter(isObject).map((webhook) => {
    const timeout = webhook["timeoutSeconds"];
    return {
      name: stringAt(webhook, "name") ?? "",
      clientConfig: objectAt(webhook, "clientConfig") ?? {},
      rules: (arrayAt(webhook, "rules") ?? []).filter(isObject),
      failurePolicy: stringAt(webhook, "failurePolicy") === "Ignore" ? "Ignore" : "Fail",
      matchPolicy: stringAt(webhook, "matchPolicy") === "Exact" ? "Exact" : "Equivalent",
      namespaceSelector: objectAt(webhook, "namespaceSelector") ?? {},
      objectSelector: objectAt(webhook, "objectSelector") ?? {},
      reinvocationPolicy: stringAt(webhook, "reinvocationPolicy") === "IfNeeded" ? "IfNeeded" : "Never",
      matchConditions: matchConditionsOf(webhook),
      timeoutSeconds: typeof timeout === "number" ? timeout : 10,
    };
  });
}

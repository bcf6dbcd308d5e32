import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import type { Strategy } from "../strategy.js";

export const serviceAccountStrategy: Strategy = {
  returnsDeletedObject: true,
  checksMetadata: ["object", "change"],
  dropFields: (account) => keepNames(objectsAt(account, "secrets")),
  warnings: accountWarnings,
};

function keepNames(references: readonly JsonObject[]): void {
  for (const reference of references)
    for (const member of Object.keys(reference)) if (member !== "name") delete reference[member];
}

const ENFORCES_SECRETS = "kubernetes.io/enforce-mountable-secrets";

function accountWarnings(account: JsonObject, old: JsonObject | undefined): string[] {
  const isSet = (of: JsonObject | undefined) =>
    memberOf(objectAt(objectAt(of, "metadata"), "annotations"), ENFORCES_SECRETS) !== undefined;
  const advice = "prefer separate namespaces to isolate access to mounted secrets";
  return isSet(account) && !isSet(old)
    ? [`metadata.annotations[${ENFORCES_SECRETS}]: deprecated in v1.32+; ${advice}`]
    : [];
}

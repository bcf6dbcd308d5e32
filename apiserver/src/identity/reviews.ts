/** The kinds that are questions: they are answered and not stored. Everything is allowed to the only user there is. */
import type { ServedType } from "../builtin/served-type.js";
import { objectAt, stringAt, type JsonObject } from "../json.js";

/** The user that the one token belongs to. */
export const ADMIN_USER = { username: "gen-operator-admin", groups: ["system:masters", "system:authenticated"] };

const ALL = ["*"];

const ANSWERS: Record<string, (review: JsonObject) => JsonObject> = {
  SelfSubjectAccessReview: () => ({ allowed: true }),
  SubjectAccessReview: () => ({ allowed: true }),
  LocalSubjectAccessReview: () => ({ allowed: true }),
  SelfSubjectReview: () => ({ userInfo: ADMIN_USER }),
  SelfSubjectRulesReview: () => ({
    resourceRules: [{ verbs: ALL, apiGroups: ALL, resources: ALL }],
    nonResourceRules: [{ verbs: ALL, nonResourceURLs: ALL }],
    incomplete: false,
  }),
};

/** True for types of which nothing is stored. */
export function isReview({ kind, verbs }: ServedType): boolean {
  return !verbs.includes("get") && (kind === "TokenReview" || kind in ANSWERS);
}

/** Returns a review with its answer. */
export function answerReview(review: JsonObject, options: { token: string }): JsonObject {
  const kind = stringAt(review, "kind") ?? "";
  const status = kind === "TokenReview" ? reviewToken(review, options) : ANSWERS[kind]?.(review);
  return { ...review, metadata: {}, ...(status === undefined ? {} : { status }) };
}

function reviewToken(review: JsonObject, { token }: { token: string }): JsonObject {
  const isKnown = stringAt(objectAt(review, "spec"), "token") === token;
  return isKnown ? { authenticated: true, user: ADMIN_USER } : { user: {} };
}

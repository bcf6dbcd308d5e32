import type { ApiClient } from "#runtime/client/api-client.js";
import { allows, missingRights, type ReviewedRules } from "#generator/doctor/check-rights.js";
import type { RequiredRight } from "#generator/emit/deploy/emit-deploy.js";
import { assert, suite } from "../../../support/suite.js";

const because = "dependent web of page";
const right = (resource: string, verb: string, more: Partial<RequiredRight> = {}): RequiredRight => ({
  ...{ verb, group: "apps", resource, because },
  ...more,
});

interface Review {
  readonly spec: { readonly namespace?: string; readonly resourceAttributes?: { readonly resource: string } };
}

/** A client that answers reviews of rules by their namespace, and allows Jobs when it is asked for one right. */
function clientOf(rules: (namespace: string) => ReviewedRules) {
  const requests: string[] = [];
  const create = async ({ definition }: { definition: { kind: string } }, { spec }: Review) => {
    requests.push(`${definition.kind} ${spec.namespace ?? spec.resourceAttributes?.resource}`);
    return definition.kind === "SelfSubjectRulesReview"
      ? { status: rules(spec.namespace ?? "") }
      : { status: { allowed: spec.resourceAttributes?.resource === "jobs" } };
  };
  return { client: { create } as unknown as ApiClient, requests };
}

const signal = new AbortController().signal;

suite("required right", (test) => {
  const rule = (
    verbs: string[],
    apiGroups: string[],
    resources: string[],
    resourceNames?: string[],
  ): ReviewedRules => ({
    resourceRules: [{ verbs, apiGroups, resources, ...(resourceNames && { resourceNames }) }],
  });
  const cases: [what: string, rules: ReviewedRules, wanted: RequiredRight, allowed: boolean][] = [
    [
      "a rule with the same verb, group, and resource",
      rule(["get"], ["apps"], ["deployments"]),
      right("deployments", "get"),
      true,
    ],
    ["a rule with another verb", rule(["list"], ["apps"], ["deployments"]), right("deployments", "get"), false],
    ["a rule with another group", rule(["get"], ["batch"], ["deployments"]), right("deployments", "get"), false],
    ["a rule with wildcards", rule(["*"], ["*"], ["*"]), right("deployments", "get"), true],
    ["a rule with wildcards, for a subresource", rule(["*"], ["*"], ["*"]), right("deployments/scale", "get"), true],
    [
      "a rule for the resource, for its subresource",
      rule(["get"], ["apps"], ["deployments"]),
      right("deployments/scale", "get"),
      false,
    ],
    [
      "a rule for */scale, for the scale subresource",
      rule(["get"], ["apps"], ["*/scale"]),
      right("deployments/scale", "get"),
      true,
    ],
    [
      "a rule for */scale, for the resource itself",
      rule(["get"], ["apps"], ["*/scale"]),
      right("deployments", "get"),
      false,
    ],
    [
      "a rule for one resourceName, for all objects",
      rule(["get"], ["apps"], ["deployments"], ["a"]),
      right("deployments", "get"),
      false,
    ],
    [
      "a rule for one resourceName, for that object",
      rule(["get"], ["apps"], ["deployments"], ["a"]),
      right("deployments", "get", { name: "a" }),
      true,
    ],
    [
      "a rule for all objects, for one object",
      rule(["get"], ["apps"], ["deployments"]),
      right("deployments", "get", { name: "a" }),
      true,
    ],
    ["no rule", {}, right("deployments", "get"), false],
  ];
  for (const [what, rules, wanted, allowed] of cases)
    test(`is ${allowed ? "granted" : "not granted"} by ${what}`, () => assert.is(allows(rules, wanted), allowed));

  for (const [stated, path, allowed] of [
    ["/healthz", "/healthz", true],
    ["/healthz", "/healthz/etcd", false],
    ["/healthz/*", "/healthz/etcd", true],
    ["*", "/version", true],
    ["/version", "/versions", false],
  ] as const)
    test(`is ${allowed ? "granted" : "not granted"} for ${path} by nonResourceURL ${stated}`, () => {
      const rules = { nonResourceRules: [{ verbs: ["get"], nonResourceURLs: [stated] }] };
      assert.is(allows(rules, { verb: "get", path, because }), allowed);
    });

  test("is reviewed with one request per namespace and one for the whole cluster", async () => {
    const { client, requests } = clientOf((namespace) =>
      rule(["get"], ["apps"], [namespace === "home" ? "*" : "none"]),
    );
    const rights = ["a", "b", "c"].flatMap((name) => [
      right(name, "get", { namespace: "home" }),
      right(name, "get", { namespace: "work" }),
      right(name, "get"),
    ]);
    const missing = await missingRights(client, rights, signal);
    assert.equal(
      missing,
      rights.filter(({ namespace }) => namespace !== "home"),
    );
    assert.is(requests.length, 3, requests.join("\n"));
  });

  test("is reviewed alone if incomplete rules do not grant it", async () => {
    const { client, requests } = clientOf(() => ({ ...rule(["get"], ["apps"], ["deployments"]), incomplete: true }));
    const rights = [right("deployments", "get"), right("jobs", "get"), right("pods", "get")];
    assert.equal(await missingRights(client, rights, signal), [rights[2]]);
    assert.equal(requests.slice(1), ["SelfSubjectAccessReview jobs", "SelfSubjectAccessReview pods"]);
  });
});

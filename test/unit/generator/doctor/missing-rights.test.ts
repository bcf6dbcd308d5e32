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

suite("rights of a user", (test) => {
  const rule = (
    verbs: string[],
    apiGroups: string[],
    resources: string[],
    resourceNames?: string[],
  ): ReviewedRules => ({
    resourceRules: [{ verbs, apiGroups, resources, ...(resourceNames && { resourceNames }) }],
  });
  const cases: [what: string, rules: ReviewedRules, wanted: RequiredRight, allowed: boolean][] = [
    ["its verb, group and resource", rule(["get"], ["apps"], ["deployments"]), right("deployments", "get"), true],
    ["another verb", rule(["list"], ["apps"], ["deployments"]), right("deployments", "get"), false],
    ["another group", rule(["get"], ["batch"], ["deployments"]), right("deployments", "get"), false],
    ["stars", rule(["*"], ["*"], ["*"]), right("deployments", "get"), true],
    ["a star for resources, of a part", rule(["*"], ["*"], ["*"]), right("deployments/scale", "get"), true],
    ["the resource, of its part", rule(["get"], ["apps"], ["deployments"]), right("deployments/scale", "get"), false],
    ["the part of all resources", rule(["get"], ["apps"], ["*/scale"]), right("deployments/scale", "get"), true],
    ["the part, of the resource", rule(["get"], ["apps"], ["*/scale"]), right("deployments", "get"), false],
    ["one name, of all", rule(["get"], ["apps"], ["deployments"], ["a"]), right("deployments", "get"), false],
    [
      "one name, of it",
      rule(["get"], ["apps"], ["deployments"], ["a"]),
      right("deployments", "get", { name: "a" }),
      true,
    ],
    ["all, of one name", rule(["get"], ["apps"], ["deployments"]), right("deployments", "get", { name: "a" }), true],
    ["nothing", {}, right("deployments", "get"), false],
  ];
  for (const [what, rules, wanted, allowed] of cases)
    test(`a rule that has ${what} ${allowed ? "gives" : "does not give"} it`, () =>
      assert.is(allows(rules, wanted), allowed));

  for (const [stated, path, allowed] of [
    ["/healthz", "/healthz", true],
    ["/healthz", "/healthz/etcd", false],
    ["/healthz/*", "/healthz/etcd", true],
    ["*", "/version", true],
    ["/version", "/versions", false],
  ] as const)
    test(`${stated} ${allowed ? "covers" : "does not cover"} ${path}`, () => {
      const rules = { nonResourceRules: [{ verbs: ["get"], nonResourceURLs: [stated] }] };
      assert.is(allows(rules, { verb: "get", path, because }), allowed);
    });

  test("one request is made for each namespace, and one for all of them", async () => {
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

  test("a right that incomplete rules do not give is asked for by itself", async () => {
    const { client, requests } = clientOf(() => ({ ...rule(["get"], ["apps"], ["deployments"]), incomplete: true }));
    const rights = [right("deployments", "get"), right("jobs", "get"), right("pods", "get")];
    assert.equal(await missingRights(client, rights, signal), [rights[2]]);
    assert.equal(requests.slice(1), ["SelfSubjectAccessReview jobs", "SelfSubjectAccessReview pods"]);
  });
});

import { Authorizer } from "#apiserver/identity/authorizer.js";
import type { JsonObject } from "#apiserver/json.js";
import { Registry } from "#apiserver/registry/registry.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const users = ["jane", "system:serviceaccount:a:robot", "system:serviceaccount:b:robot"].map((username) => ({
  username,
  groups: username === "jane" ? ["readers"] : ["system:serviceaccounts"],
}));

const subject = fc.constantFrom(
  { kind: "User", name: "jane" },
  { kind: "Group", name: "readers" },
  { kind: "Group", name: "system:serviceaccounts" },
  { kind: "ServiceAccount", name: "robot", namespace: "a" },
);
const name = fc.constantFrom("one", "two");
const namespace = fc.constantFrom("a", "b");
const role = fc.record({
  rules: fc.array(
    fc.record({
      apiGroups: fc.constant([""]),
      resources: fc.constant(["configmaps"]),
      verbs: fc.subarray(["get", "list"]),
    }),
    { maxLength: 2 },
  ),
});
const binding = fc.record({
  roleRef: fc.record({ kind: fc.constantFrom("Role", "ClusterRole"), name }),
  subjects: fc.array(subject, { maxLength: 2 }),
});
const aggregated = fc.record({
  aggregationRule: fc.constant({ clusterRoleSelectors: [{ matchLabels: { to: "all" } }] }),
});
const written = fc.oneof(
  fc.record({ plural: fc.constant("roles"), namespace, name, object: fc.option(role) }),
  fc.record({ plural: fc.constant("rolebindings"), namespace, name, object: fc.option(binding) }),
  fc.record({ plural: fc.constant("clusterroles"), name, object: fc.option(fc.oneof(role, aggregated)) }),
  fc.record({ plural: fc.constant("clusterrolebindings"), name, object: fc.option(binding) }),
);

suite("Authorizer", (test) => {
  test("decides by the current roles and bindings, regardless of cached decisions", () => {
    // Shared by all sequences: what one leaves is where the next one starts.
    const registry = new Registry();
    const authorizer = new Authorizer(registry);
    const last = new Map<string, boolean>();
    const seen = { granted: 0, revoked: 0, repeated: 0 };
    fc.assert(
      fc.property(fc.array(written, { maxLength: 12 }), (writes) => {
        for (const write of writes) {
          const { plural, name, object } = write;
          const store = registry.find({ group: "rbac.authorization.k8s.io", version: "v1", plural })?.store;
          const key = "namespace" in write ? `${write.namespace}/${name}` : name;
          if (object === null) store?.remove(key);
          else store?.put(key, { metadata: { name, labels: { to: "all" } }, ...object } as unknown as JsonObject);
          for (const user of users) {
            for (const namespace of ["", "a", "b"]) {
              const attributes = {
                verb: "get",
                group: "",
                resource: "configmaps",
                subresource: "",
                namespace,
                name: "",
              };
              const decision = authorizer.decide(user, attributes);
              assert.equal(decision, new Authorizer(registry).decide(user, attributes));
              assert.equal(authorizer.decide(user, attributes), decision, "from the cache");
              const key = `${user.username} ${namespace}`;
              const before = last.get(key) ?? false;
              if (before === decision.allowed) seen.repeated++;
              else seen[decision.allowed ? "granted" : "revoked"]++;
              last.set(key, decision.allowed);
            }
          }
        }
      }),
    );
    // Otherwise the law would hold for an authorizer that always denies, or keeps its first decision.
    for (const [what, count] of Object.entries(seen)) assert.ok(count > 10, `${what} ${count} times`);
  });
});

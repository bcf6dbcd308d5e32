// JOSDK's GenericKubernetesResourceMatcherTest, by its numbers in JOSDK.md.
import type { Draft, KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { genericMatcher, statusMatcher, type GenericMatcherOptions } from "#runtime/apply/generic-matcher.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";

interface Anything extends KubernetesObject {
  [member: string]: unknown;
}

const deployment = (
  change: (object: Draft<Anything> & { spec: { [name: string]: unknown } }) => void = () => {},
): Anything => {
  const container = { name: "nginx", image: "nginx:1", ports: [{ containerPort: 80 }] };
  const object = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "a", namespace: "x", labels: { app: "a" }, annotations: { note: "n" } },
    spec: { replicas: 1, template: { spec: { containers: [container] } } },
  };
  change(object);
  return object;
};

function argumentsOf(desired: Anything, live: Anything) {
  const definition = builtinDefinition(live.apiVersion, live.kind);
  return { definition, verb: "update", isStatus: false, desired, live } as const;
}

function matches(desired: Anything, live: Anything, options: GenericMatcherOptions = {}): boolean {
  return genericMatcher(options)(argumentsOf(desired, live));
}

const scaled = deployment(({ spec }) => void (spec["replicas"] = 2));
const added = deployment(({ spec }) => void (spec["paused"] = true));

suite("genericMatcher (GenericKubernetesResourceMatcherTest)", (test) => {
  test("matches equal objects [1]", () => assert.ok(matches(deployment(), deployment())));

  test("matches additional live fields, except in strict mode [2, 3]", () => {
    assert.ok(matches(deployment(), added));
    assert.not(matches(deployment(), added, { strict: true }));
  });

  test("does not match fields that are missing or changed in the live object [4, 5]", () => {
    assert.not(matches(added, deployment()));
    assert.not(matches(scaled, deployment()));
  });

  test("ignores the status [6]", () => {
    const withStatus = deployment((object) => void (object["status"] = { replicas: 7 }));
    assert.ok(matches(withStatus, deployment()));
    assert.ok(matches(deployment(), withStatus, { strict: true }));
  });

  test("does not match a changed value, unless it is at or below an ignored path [7, 8, 9]", () => {
    assert.not(matches(deployment(), scaled, { ignoredPaths: ["/spec/paused"] }));
    assert.ok(matches(deployment(), scaled, { ignoredPaths: ["/spec/replicas"] }));
    assert.ok(matches(deployment(), scaled, { ignoredPaths: ["/spec"] }));
  });

  test("matches additional labels and annotations, except in strict mode, but no changed ones [10]", () => {
    const labelled = deployment(({ metadata }) => void (metadata.labels = { app: "a", extra: "x" }));
    const annotated = deployment(({ metadata }) => void (metadata.annotations = { note: "n", extra: "x" }));
    for (const live of [labelled, annotated]) {
      assert.ok(matches(deployment(), live));
      assert.not(matches(deployment(), live, { metadataStrict: true }));
      assert.not(matches(live, deployment()));
    }
    const renamed = deployment(({ metadata }) => void (metadata.labels = { app: "b" }));
    assert.not(matches(deployment(), renamed));
  });

  test("compares the top-level fields of a ServiceAccount [11]", () => {
    const account = (more: object): Anything => ({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "a" },
      ...more,
    });
    const secrets = [{ name: "registry" }];
    assert.ok(matches(account({}), account({ imagePullSecrets: secrets })));
    assert.not(matches(account({ imagePullSecrets: secrets }), account({})));
    assert.not(
      matches(account({ automountServiceAccountToken: false }), account({ automountServiceAccountToken: true })),
    );
  });

  test("compares the data of a ConfigMap [12]", () => {
    const configMap = (data: object): Anything => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a" },
      data,
    });
    assert.ok(matches(configMap({ a: "1" }), configMap({ a: "1" })));
    assert.not(matches(configMap({ a: "1" }), configMap({ a: "2" })));
    assert.ok(matches(configMap({ a: "1" }), configMap({ a: "1", theirs: "2" })));
    assert.not(matches(configMap({ a: "1" }), configMap({ a: "1", theirs: "2" }), { strict: true }));
  });

  test("compares only the status with statusMatcher, and ignores additional fields except in strict mode [13, 14, 15, 16]", () => {
    const withStatus = (status: object, change?: (object: Draft<Anything>) => void) =>
      deployment((object) => {
        object["status"] = status;
        change?.(object);
      });
    const ready = withStatus({ replicas: 1 });
    const more = withStatus({ replicas: 1, readyReplicas: 1 });
    const matchesStatus = (desired: Anything, live: Anything, strict = false) =>
      statusMatcher({ strict })(argumentsOf(desired, live));
    assert.ok(matchesStatus(ready, ready));
    assert.ok(
      matchesStatus(
        ready,
        withStatus({ replicas: 1 }, ({ metadata }) => void (metadata.labels = {})),
      ),
    );
    assert.not(matchesStatus(ready, withStatus({ replicas: 2 })));
    assert.ok(matchesStatus(ready, more));
    assert.not(matchesStatus(ready, more, true));
  });
});

import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { compileProjection } from "#runtime/cache/projection.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const metadata = {
  name: "a",
  namespace: "x",
  uid: "u",
  resourceVersion: "5",
  generation: 2,
  creationTimestamp: "2026-11-21T00:00:00Z",
  labels: { "example.com/app": "web", tier: "front" },
  annotations: { note: "long" },
  ownerReferences: [{ apiVersion: "v1", kind: "Page", name: "one", uid: "p" }],
};
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata,
  spec: { nodeName: "n", containers: [{ name: "c", image: "i", env: [] }, { image: "j" }] },
  status: { phase: "Running", conditions: [{ type: "Ready" }] },
};
const { name, namespace, uid, resourceVersion, generation, creationTimestamp, ownerReferences } = metadata;
const identity = { name, namespace, uid, resourceVersion, generation, creationTimestamp, ownerReferences };

type Json = { [name: string]: unknown };

// Leaves of an object with the paths that lead to them; what is in a list counts as one path.
function leavesOf(value: unknown, path: readonly string[] = []): Map<string, unknown[]> {
  const leaves = new Map<string, unknown[]>();
  const add = (more: Map<string, unknown[]>) => {
    for (const [leaf, values] of more) leaves.set(leaf, [...(leaves.get(leaf) ?? []), ...values]);
  };
  if (Array.isArray(value)) for (const item of value) add(leavesOf(item, path));
  else if (typeof value === "object" && value !== null)
    for (const [field, inner] of Object.entries(value)) add(leavesOf(inner, [...path, field]));
  else leaves.set(path.join("."), [value]);
  return leaves;
}

const field = fc.constantFrom("a", "b", "c");
const { tree: json } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.integer(),
    fc.dictionary(field, tie("tree"), { maxKeys: 3 }),
    fc.array(tie("tree"), { maxLength: 3 }),
  ),
}));
const path = fc.array(field, { minLength: 1, maxLength: 3 }).map((names) => `spec.${names.join(".")}`);

suite("projection", (test) => {
  test("keeps identity, metadata and the selected paths of an object", () => {
    const project = compileProjection(["status.phase", "spec.containers[].image"]);
    assert.equal(project(pod), {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec: { containers: [{ image: "i" }, { image: "j" }] },
      status: { phase: "Running" },
    });
  });

  test("keeps only identity and owner references besides the selected paths of the metadata", () => {
    const project = compileProjection(['metadata.labels["example.com/app"]', "metadata.finalizers"]);
    assert.equal(project(pod), {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...identity, labels: { "example.com/app": "web" } },
    });
    assert.equal(compileProjection(["metadata"])(pod).metadata, metadata);
  });

  test("keeps exactly the leaves on the selected paths", () => {
    fc.assert(
      fc.property(fc.dictionary(field, json, { maxKeys: 3 }), fc.uniqueArray(path, { maxLength: 4 }), (spec, paths) => {
        const object = { apiVersion: "v1", kind: "Pod", metadata, spec } as KubernetesObject;
        const kept = leavesOf((compileProjection(paths)(object) as unknown as Json)["spec"], ["spec"]);
        const leaves = leavesOf(spec, ["spec"]);
        // A path leads to what is inside of its end; where it goes on behind a leaf there is nothing smaller to keep.
        const isWanted = (leaf: string) =>
          paths.some((each) => leaf === each || leaf.startsWith(`${each}.`) || each.startsWith(`${leaf}.`));
        const wanted = [...leaves].filter(([leaf]) => isWanted(leaf));
        assert.equal(
          new Map([...kept].filter(([leaf]) => leaf !== "spec")),
          new Map(wanted.filter(([leaf]) => leaf !== "spec")),
        );
      }),
    );
  });

  test("does not modify the object, and shares subtrees that it keeps whole", () => {
    const before = structuredClone(pod);
    const part = compileProjection(["status"])(pod) as typeof pod;
    assert.is(part.status, pod.status);
    assert.is(part.metadata, pod.metadata);
    assert.equal(pod, before);
  });

  test("is independent of the order of paths and of nested paths", () => {
    const one = compileProjection(["status.phase", "status"]);
    const other = compileProjection(["status", "status.phase"]);
    assert.equal(one(pod), other(pod));
    assert.equal((one(pod) as typeof pod).status, pod.status);
  });

  test("rejects an invalid path with an example of a valid one", () => {
    for (const wrong of ["", ".", "a..b", "[]", "a[0]", "a[", 'a["b]', ".a", "a."])
      assert.throws(() => compileProjection([wrong]), /is not a valid field path: use the form status\.phase/, wrong);
  });
});

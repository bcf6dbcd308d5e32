import { formatDiagnostic } from "#generator/diagnostic.js";
import { compareWorkflows } from "#generator/diff/compare-workflows.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { buildModel } from "#generator/check/build-model.js";
import { assert, suite } from "../../../support/suite.js";

const builtin = await readBuiltinKinds();
const checkSpec = await loadSpecSchema();

interface Parts {
  /** Default: page */
  readonly name?: string;
  readonly dependents: string;
  readonly rest?: string;
}

async function controllersOf({ name = "page", dependents, rest = "" }: Parts) {
  const text =
    `apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: ${name} }\nspec:\n  primary: v1/Service\n` +
    `  dependents: { ${dependents} }\n${rest}`;
  const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
  const built = await buildModel({ crds: [], workflows, builtin });
  const problems = [...diagnostics, ...built.diagnostics].filter(({ severity }) => severity === "error");
  assert.equal(problems.map(formatDiagnostic), []);
  return built.model?.controllers ?? [];
}

/** What is said of a change of a spec, a line for each. */
async function diff(before: Parts, after: Parts): Promise<string[]> {
  return compareWorkflows(await controllersOf(before), await controllersOf(after)).map(
    ({ effect, path, message }) => `${effect} ${path ?? "controller"}: ${message}`,
  );
}

const WEB = "web: { resource: apps/v1/Deployment }";
const poll = (state: string) => `db: { external: { poll: { every: 1m }, state: ${state} } }`;

suite("workflow diff", (test) => {
  test("suggests moved for a renamed dependent, matched by its dependencies if the kind is ambiguous", async () => {
    const service = (on: string) => `service: { resource: v1/ConfigMap, dependsOn: [${on}] }`;
    const other = "other: { resource: apps/v1/Deployment }";
    const lines = await diff(
      { dependents: `${WEB}, ${service("web")}` },
      { dependents: `${WEB.replace("web", "front")}, ${other}, ${service("front")}` },
    );
    assert.equal(
      lines[0],
      "breaking web: removed, and front of the same kind added: its objects are replaced. To keep them and your code: moved: [{ from: web, to: front }]",
    );
    const unclear = await diff({ dependents: WEB }, { dependents: `${WEB.replace("web", "front")}, ${other}` });
    assert.match(
      unclear[0] ?? "",
      "removed; its objects are deleted. generate requires an entry: list web under removed or moved",
    );
  });

  test("reports a controller that lists its former name as renamed, and compares its dependents", async () => {
    const renamed = { name: "site", dependents: WEB };
    assert.equal(await diff({ dependents: WEB }, renamed), [
      "breaking controller: removed; its finalizers and objects remain",
      "compatible controller: added",
    ]);
    const rest = "  controller: { formerNames: [page] }\n";
    const kept = "compatible controller: renamed to site; objects, ids and managed fields of the old name are kept";
    assert.equal(await diff({ dependents: WEB }, { ...renamed, rest }), [kept]);
    const lines = await diff({ dependents: WEB }, { name: "site", dependents: "", rest });
    assert.is(lines[0], kept);
    assert.match(lines[1] ?? "", "breaking web: removed; its objects are deleted");
    assert.equal(await diff({ name: "site", dependents: WEB, rest }, renamed), [], "the entry goes when it is done");
  });

  test("reports a new former field manager as breaking, unless it is the controller's previous one", async () => {
    const settings = (text: string) => ({ dependents: WEB, rest: `  controller: { ${text} }\n` });
    assert.equal(await diff(settings("namespaces: all"), settings("formerFieldManagers: [other]")), [
      "breaking formerFieldManagers: other added; the fields that it owns on objects of the operator are removed unless desired() returns them: " +
        "gen-operator doctor --takeover lists them",
    ]);
    const renamed = settings("fieldManager: mine, formerFieldManagers: [page]");
    assert.equal(await diff(settings("namespaces: all"), renamed), [
      "compatible fieldManager: page → mine; the fields of the old one are taken over",
    ]);
    assert.equal(await diff(renamed, settings("fieldManager: mine")), [], "the entry goes when it is done");
  });

  test("reports a moved dependent as compatible, without changes of dependencies on it", async () => {
    const service = (on: string) => `service: { resource: v1/ConfigMap, dependsOn: [${on}] }`;
    assert.equal(
      await diff(
        { dependents: `${WEB}, ${service("web")}` },
        {
          dependents: `${WEB.replace("web", "front")}, ${service("front")}`,
          rest: "  moved: [{ from: web, to: front }]\n",
        },
      ),
      ["compatible web: moved to front; its objects are kept, and your code follows"],
    );
  });

  test("reports the objects of a removed dependent by its deletion policy", async () => {
    const removed = (deletion: string) =>
      diff(
        { dependents: WEB },
        { dependents: "", rest: `  removed: { web: { resource: apps/v1/Deployment, deletion: ${deletion} } }\n` },
      );
    assert.equal(await removed("ordered"), ["breaking web: removed; its objects are deleted (deletion: ordered)"]);
    assert.equal(await removed("orphan"), [
      "compatible web: removed; its objects lose their link and are kept (deletion: orphan)",
    ]);
    assert.equal(await removed("garbageCollected"), [
      "compatible web: removed; its objects remain until their primary is deleted (deletion: garbageCollected)",
    ]);
    const external = await diff(
      { dependents: poll("{ status: databaseId }").replace(", state: { status: databaseId }", "") },
      { dependents: "" },
    );
    assert.equal(external, ["breaking db: removed; its resources outside Kubernetes remain, unmanaged"]);
  });

  test("reports the effect of changed operations, selectors, and serverSideApply on objects", async () => {
    const web = (more: string) => ({ dependents: `web: { resource: apps/v1/Deployment, ${more} }` });
    assert.equal(
      await diff(web("operations: { update: own }"), web("operations: { delete: false }, deletion: ordered")),
      [
        "breaking web: deletion garbageCollected → ordered",
        "compatible web: update by your function → by the runtime",
        "breaking web: delete by the runtime → never; its objects are no longer deleted",
      ],
    );
    assert.equal(await diff(web("timeout: 5s"), web("labelSelector: tier=web, serverSideApply: false, timeout: 10s")), [
      "breaking web: labelSelector none → tier=web; objects that it does not select are no longer seen, and are created again; the old ones need an entry under removed",
      "breaking web: written by PUT now; fields of other managers are overwritten",
      "compatible web: timeoutMs 5000 → 10000",
    ]);
  });

  test("reports where new objects are created after a namespace change, and what happens to the old ones", async () => {
    const web = (more: string) => ({ dependents: `web: { resource: apps/v1/Deployment, deletion: ordered${more} }` });
    const stated = "new objects are created there, and the old ones need an entry under removed";
    assert.equal(await diff(web(""), web(", namespace: a")), [`breaking web: namespace of the primary → a; ${stated}`]);
    assert.equal(await diff(web(", namespace: a"), web(", namespace: b")), [
      `breaking web: namespace a → b; ${stated}`,
    ]);
    assert.equal(await diff(web(", namespace: a"), web("")), [
      "breaking web: namespace a → of the primary; new objects are created there, and the old ones are pruned",
    ]);
  });

  test("reports changed dependencies, event sources, and controller settings", async () => {
    const after = (more: string) => `${WEB}, config: { resource: v1/ConfigMap${more} }`;
    const sources = (pods: string) => `  eventSources: { pods: { resource: v1/Pod, ${pods} } }\n`;
    assert.equal(
      await diff(
        { dependents: after(""), rest: sources("mapping: { label: { name: example.com/page } }") },
        {
          dependents: after(", dependsOn: [web]"),
          rest: `${sources("mapping: { label: { name: example.com/site } }, cache: metadata").replace("pods:", "tokens: { resource: v1/Secret, mapping: { label: { name: a } } }, pods:")}  controller: { maxConcurrentReconciles: 4 }\n`,
        },
      ),
      [
        "compatible maxConcurrentReconciles: default → 4",
        "compatible eventSources.pods.mapping.keys.name: example.com/page → example.com/site",
        "compatible eventSources.pods.cache: full → metadata",
        "compatible eventSources.tokens: added: v1/Secret is watched; the operator needs permissions for it",
        "compatible config: depends on web (required); it is deleted when web is inactive",
      ],
    );
    const none = await diff({ dependents: WEB, rest: sources("cache: metadata") }, { dependents: WEB });
    assert.equal(none, ["compatible eventSources.pods: removed; its changes no longer trigger reconciles"]);
  });

  test("reports a changed store of external ids as breaking, but perItem as compatible", async () => {
    assert.equal(await diff({ dependents: poll("{ in: secret }") }, { dependents: poll("{ in: configMap }") }), [
      "breaking db: ids stored in secret → configMap; stored ids are not found: copy them first, otherwise resources are created twice",
    ]);
    const bulk = (state: string) => ({ dependents: poll(state).replace("db: {", "db: { bulk: {},") });
    assert.equal(await diff(bulk("{ in: secret }"), bulk("{ in: secret, perItem: true }")), [
      "compatible db: ids stored in secret → secret of each item; the operator moves the stored ids",
    ]);
  });
});

// A cache keeps objects in the order in which it learned of them; lists that functions of the user read are sorted.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject, ResourceReader } from "#runtime/base/kubernetes-object.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentController } from "../dependents/sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { isOfTests, spacesOf } from "../space.js";

const openSpace = spacesOf();
const ALL = () => ["all"];
const lettersOf = (objects: readonly KubernetesObject[]) =>
  objects.flatMap(({ metadata }) => (isOfTests({ metadata }) ? metadata.name : [])).join("");
const sorted = (letters: string) => [...letters].sort().join("");

suite("lists of cached objects", (test) => {
  test("are sorted by key after deletions, recreations and a restart", async () => {
    await using space = await openSpace();
    const { namespace } = space;
    const mapped: string[] = [];
    let primaries: ResourceReader<KubernetesObject> | undefined;
    const source = informerSource({
      name: "maps",
      resource: ConfigMap,
      indexes: { all: ALL },
      mapper: (_, context) => {
        mapped.push(lettersOf(context.primaries.byIndex("all", "all")));
        return [`${namespace}/d`];
      },
    });
    const controller = dependentController([], {
      indexes: { all: ALL },
      eventSources: () => [source],
      reconciler: { reconcile: ({ context }) => void (primaries = context.primaries) },
    });
    const lists = () => ({
      list: lettersOf(source.list()),
      "list of a namespace": lettersOf(source.list({ namespace })),
      "list of what fulfils a condition": lettersOf(source.list({ where: () => true })),
      byIndex: lettersOf(source.byIndex("all", "all")),
      "primaries.list": lettersOf(primaries?.list() ?? []),
      "primaries.list of a namespace": lettersOf(primaries?.list({ namespace }) ?? []),
      "primaries.byIndex": lettersOf(primaries?.byIndex("all", "all") ?? []),
    });
    const requireAll = async (letters: string) => {
      await waitFor(`${letters} are known`, () => Object.values(lists()).every((list) => sorted(list) === letters));
      for (const [read, list] of Object.entries(lists())) assert.is(list, letters, read);
    };
    const createAll = async (...names: readonly string[]) => {
      for (const name of names) {
        await space.create(Sample, { metadata: { name }, spec: { number: 0 } });
        await space.create(ConfigMap, { metadata: { name } });
      }
    };
    {
      await using running = await space.start([controller]);
      await createAll("d", "a", "c");
      await requireAll("acd");
      await space.delete(ConfigMap, "a");
      await space.delete(Sample, "a");
      await requireAll("cd");
      await createAll("a", "b");
      await requireAll("abcd");
      await running.quiet();
    }
    primaries = undefined;
    await using running = await space.start([controller]);
    await requireAll("abcd");
    await running.quiet();
    for (const list of mapped) assert.is(list, sorted(list), "primaries of a mapper");
    assert.ok(mapped.includes("abcd"), "the mapper saw all primaries");
  });
});

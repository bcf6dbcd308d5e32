import fc from "../../support/fast-check.js";
import { DataFolder } from "#apiserver/storage/data-folder.js";
import { Store } from "#apiserver/storage/store.js";
import { runs } from "../../support/runs.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const OPTIONS = { historyLimit: 4 };
const RESOURCES = ["things", "others"];

type Step =
  { do: "put" | "remove"; resource: string; key: string } | { do: "compact" | "drop" | "reopen"; resource: string };

const resource = fc.constantFrom(...RESOURCES);
const write = fc.record({
  do: fc.constantFrom("put" as const, "put" as const, "remove" as const),
  resource,
  key: fc.constantFrom("a", "b", "n/c"),
});
const other = fc.record({ do: fc.constantFrom("compact" as const, "drop" as const, "reopen" as const), resource });
const steps = fc.array(fc.oneof({ weight: 5, arbitrary: write }, { weight: 1, arbitrary: other }), { maxLength: 40 });

function take(store: Store, step: Step, value: number): void {
  if (step.do === "put") store.resource(step.resource).put(step.key, { metadata: { name: step.key }, value });
  else if (step.do === "remove") store.resource(step.resource).remove(step.key);
  else if (step.do === "compact") store.compact();
  else if (step.do === "drop") store.drop(step.resource);
}

function contentOf(store: Store): unknown {
  const resources = RESOURCES.map((name) => {
    const things = store.resource(name);
    const events = things.eventsAfter(things.compacted)?.map(({ revision, key, previous, current }) => ({
      ...{ revision, key, previous: previous?.json, current: current?.json },
    }));
    return { objects: things.list("").map(({ json }) => json), compacted: things.compacted, events };
  });
  return { revision: store.revision, resources };
}

suite("data folder with random writes", (test) => {
  test("restores objects, history and revision after each reopen", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        await using temporary = await createTemporaryFolder();
        let [store, folder] = [new Store(OPTIONS), await DataFolder.open(temporary.path)];
        folder.restore(store);
        for (const [index, step] of [...all, { do: "reopen", resource: "" } as const].entries()) {
          take(store, step, index);
          if (step.do !== "reopen") continue;
          await folder.close();
          const before = contentOf(store);
          [store, folder] = [new Store(OPTIONS), await DataFolder.open(temporary.path)];
          folder.restore(store);
          assert.equal(contentOf(store), before);
        }
        await folder.close();
      }),
      {
        numRuns: runs(120),
        examples: [
          [
            [
              { do: "put", resource: "things", key: "a" },
              { do: "compact", resource: "things" },
              { do: "drop", resource: "things" },
            ],
          ],
        ],
      },
    );
  });
});

// Whatever was stated once and is stated no more goes, however it was written in between.
import { startApiServer } from "#apiserver/index.js";
import fc from "../../../support/fast-check.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { runs } from "../../../support/runs.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting } from "./one-object.js";

const ConfigMap = builtinDefinition("v1", "ConfigMap");
const CONTROLLER = { "gen-operator.dev/controller": "us" };
const OURS = ["a", "b", "c"];

interface Step {
  readonly by: "apply" | "put" | "others" | "othersApply" | "strip" | "restart";
  readonly data: readonly string[];
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  readonly value: string;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    by: fc.constantFrom<Step["by"][]>("apply", "apply", "put", "put", "others", "othersApply", "strip", "restart"),
    data: fc.subarray(OURS),
    labels: fc.subarray(OURS),
    annotations: fc.subarray(OURS),
    value: fc.constantFrom("1", "2"),
  }),
  { minLength: 2, maxLength: 10 },
);

const server = shared(() => startApiServer({ tls: false }));
const mapOf = (keys: readonly string[], value: string) => Object.fromEntries(keys.map((key) => [key, value]));
const ofOurs = (map: { [key: string]: string } = {}) =>
  Object.fromEntries(Object.entries(map).filter(([key]) => OURS.includes(key)));

suite("fields that are no longer desired", (test) => {
  test(
    "are removed by the next write, and foreign fields kept, for random sequences of writes",
    async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          await using writing = await startWriting({ ...(await server()), kubeconfig: "" } as never, ConfigMap);
          // Labels and annotations that stripped managed fields no longer tell from those of others.
          const unknown = new Set<string>();
          let isStripped = false;
          let isCreated = false;
          for (const { by, data, labels, annotations, value } of sequence) {
            if (by === "restart") writing.restart();
            else if (by === "apply" || by === "put") {
              const metadata = {
                labels: { ...mapOf(labels, value), ...CONTROLLER },
                annotations: mapOf(annotations, value),
              };
              const desired = { metadata, data: mapOf(data, value) };
              await writing[by](desired);
              isCreated = true;
              const live = await writing.live();
              const found = live["data"] as { [key: string]: string } | undefined;
              assert.equal(ofOurs(found), mapOf(data, value));
              for (const part of ["labels", "annotations"] as const) {
                const keys = Object.keys(ofOurs(live.metadata[part]));
                const stated = part === "labels" ? labels : annotations;
                assert.equal(
                  keys.filter((key) => !stated.includes(key) && !unknown.has(`${part} ${key}`)),
                  [],
                );
                for (const key of stated) assert.is(live.metadata[part]?.[key], value);
              }
              const second = await writing[by](desired);
              // Where the managed fields were stripped, an empty map that is stated goes with the last field that was left in it, and is applied
              // once more.
              const isMapStatedAgain = isStripped && by === "apply" && second.kind === "updated";
              assert.is((isMapStatedAgain ? await writing[by](desired) : second).kind, "unchanged");
              if (by === "apply" && !isStripped) assert.is(live.metadata.labels?.["theirs"] ?? "x", "x");
            } else if (isCreated && by === "strip") {
              const { metadata } = await writing.live();
              if (metadata.annotations?.["gen-operator.dev/last-stated"] === undefined)
                for (const part of ["labels", "annotations"] as const)
                  for (const key of Object.keys(metadata[part] ?? {})) unknown.add(`${part} ${key}`);
              await writing.others({ jsonPatch: [{ op: "replace", path: "/metadata/managedFields", value: [{}] }] });
              isStripped = true;
            } else if (isCreated) {
              const change = { metadata: { labels: { theirs: "x" } }, data: { theirs: "x" } };
              await writing.others(by === "others" ? { mergePatch: change } : { apply: change });
            }
          }
          if (isCreated && !isStripped && sequence.at(-1)!.by === "apply") {
            const wasEdited = sequence.findLastIndex(({ by }) => by === "others" || by === "othersApply");
            const wasPut = sequence.findLastIndex(({ by }) => by === "put");
            const isFirst = sequence.findIndex(({ by }) => by === "apply" || by === "put");
            const { metadata, ...content } = await writing.live();
            if (wasEdited > isFirst) assert.is(metadata.labels?.["theirs"], "x");
            if (wasEdited > Math.max(wasPut, isFirst))
              assert.is((content["data"] as { theirs?: string } | undefined)?.theirs, "x");
          }
        }),
        { numRuns: runs(800) },
      );
    },
    { timeoutMs: 120_000 },
  );
});

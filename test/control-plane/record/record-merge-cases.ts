// node test/dist/control-plane/record/record-merge-cases.js writes fixtures/server-side-apply/published.jsonl: what the tests of
// structured-merge-diff, the library inside kube-apiserver, put into it, and what comes out. It runs them (which Go has to be there for)
// with a line of JSON printed by every function that they call.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { recordGoTests, type GoRecording } from "./record-go-tests.js";

const MODULE = "sigs.k8s.io/structured-merge-diff/v6";
const OUTPUT = join(repositoryRoot, "fixtures/server-side-apply/published.jsonl");

/** What is recorded of one call, or of one step of a sequence. */
interface Entry {
  readonly op: string;
  readonly [name: string]: unknown;
}

/** The beginning of each function that is recorded, and what takes its place. */
const HOOKS: GoRecording["hooks"] = {
  "typed/typed.go": [
    [
      "func (tv TypedValue) Validate(opts ...ValidationOptions) error {",
      "func (tv TypedValue) Validate(opts ...ValidationOptions) (err error) {\n\tdefer func() { recordValidate(tv, len(opts) > 0, err) }()",
    ],
    [
      "func (tv TypedValue) ToFieldSet() (*fieldpath.Set, error) {",
      "func (tv TypedValue) ToFieldSet() (set *fieldpath.Set, err error) {\n\tdefer func() { recordSet(tv, set, err) }()",
    ],
    [
      "func (tv TypedValue) Merge(pso *TypedValue) (*TypedValue, error) {",
      "func (tv TypedValue) Merge(pso *TypedValue) (out *TypedValue, err error) {\n\tdefer func() { recordMerge(tv, pso, out, err) }()",
    ],
    [
      "func (tv TypedValue) Compare(rhs *TypedValue) (c *Comparison, err error) {",
      "func (tv TypedValue) Compare(rhs *TypedValue) (c *Comparison, err error) {\n\tdefer func() { recordCompare(tv, rhs, c, err) }()",
    ],
    [
      "func (tv TypedValue) RemoveItems(items *fieldpath.Set) *TypedValue {",
      "func (tv TypedValue) RemoveItems(items *fieldpath.Set) (out *TypedValue) {\n\tdefer recordRemove(tv, items)(&out)",
    ],
  ],
  "typed/reconcile_schema.go": [
    [
      "func ReconcileFieldSetWithSchema(fieldset *fieldpath.Set, tv *TypedValue) (*fieldpath.Set, error) {",
      "func ReconcileFieldSetWithSchema(fieldset *fieldpath.Set, tv *TypedValue) (set *fieldpath.Set, err error) {\n\tdefer recordReconcile(fieldset, tv)(&set, &err)",
    ],
  ],
  "internal/fixture/state.go": [
    [
      "UpdateObject(tv *typed.TypedValue, version fieldpath.APIVersion, manager string) error {\n\terr := s",
      'UpdateObject(tv *typed.TypedValue, version fieldpath.APIVersion, manager string) (err error) {\n\tdefer s.record("update", tv, version, manager, true, &err)\n\terr = s',
    ],
    [
      "ApplyObject(tv *typed.TypedValue, version fieldpath.APIVersion, manager string, force bool) error {\n\terr := s",
      'ApplyObject(tv *typed.TypedValue, version fieldpath.APIVersion, manager string, force bool) (err error) {\n\tdefer s.record("apply", tv, version, manager, force, &err)\n\terr = s',
    ],
    [
      "TestWithConverter(parser Parser, converter merge.Converter) error {",
      "TestWithConverter(parser Parser, converter merge.Converter) error {\n\ttc.record(converter)",
    ],
  ],
};

const tests = recordGoTests<Entry>({
  module: MODULE,
  files: {
    "typed/record.go": "merge-cases/typed/record.go",
    "internal/fixture/record.go": "merge-cases/fixture/record.go",
  },
  hooks: HOOKS,
  args: ["./merge", "./typed"],
});
const { lines, tried } = written(tests);
writeFileSync(OUTPUT, `${lines.join("\n")}\n`);
console.log(`${lines.length - 1} tests of ${MODULE} recorded, of which ${tried} can be tried`);

/** Writes a test a line, after a line with all types. */
function written(tests: ReadonlyMap<string, readonly Entry[]>): { lines: string[]; tried: number } {
  const types = new Map<string, number>();
  const indexOf = (type: unknown): number => {
    const text = JSON.stringify(type);
    if (!types.has(text)) types.set(text, types.size);
    return types.get(text)!;
  };
  let tried = 0;
  const lines = [...tests].flatMap(([test, entries]) => {
    const lacks = reasonToSkip(test, entries);
    if (lacks !== undefined) return JSON.stringify({ test, lacks });
    const begins = entries.filter(({ op }) => op === "begin");
    const isSequence = entries.some(({ op }) => op === "apply" || op === "update");
    const withIndex = ({ type, ...rest }: Entry) => ({ type: indexOf(type), ...rest });
    const calls = isSequence ? [] : unique(entries.filter(isOwnCall(test)).map(withIndex));
    // What is left prepares others.
    if (!isSequence && calls.length === 0) return [];
    tried++;
    if (!isSequence) return JSON.stringify({ test, calls });
    // One of a kind: some tests run a sequence again and again.
    const last = begins.length < 2 ? entries : entries.slice(0, entries.indexOf(begins[1]!));
    const steps = last
      .filter(({ op }) => op === "apply" || op === "update")
      .map(({ types: byVersion, ...rest }) => ({
        ...rest,
        types: Object.fromEntries(
          Object.entries(byVersion as object).map(([version, type]) => [version, indexOf(type)]),
        ),
      }));
    return JSON.stringify({ test, converter: begins[0]?.["converter"], ignored: begins[0]?.["ignored"], steps });
  });
  return { lines: [`[${[...types.keys()].join(",\n")}]`.replaceAll("\n", ""), ...lines], tried };
}

function reasonToSkip(test: string, entries: readonly Entry[]): string | undefined {
  if (entries.some(({ filter }) => filter === true)) return "fields are left out by a function of Go";
  if (/^TestSchemaSchema|^TestInvalidOverride/.test(test)) return "a schema in the form of the library is checked";
  if (entries.some(({ type, types }) => type === null || Object.values(types ?? {}).includes(null)))
    return "a schema of Kubernetes, which other tests read whole";
  return undefined;
}

// The library checks every value that it reads, and the tests that are not about that say nothing of it.
function isOwnCall(test: string): (entry: Entry) => boolean {
  return ({ op, error }) =>
    op === "validate" ? /^Test(SchemaValidation|ValidateDeduced|DefaultKeysFlatErrors)/.test(test) : error === null;
}

function unique<T>(entries: readonly T[]): T[] {
  return [...new Map(entries.map((entry) => [JSON.stringify(entry), entry])).values()];
}

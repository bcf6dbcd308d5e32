// The tests of structured-merge-diff, the library inside kube-apiserver: what they put in, and what comes out. Recorded by
// test/control-plane/record/record-merge-cases.ts.
import { readFileSync } from "node:fs";
import { FieldSet, decodeFieldsV1, encodeFieldsV1 } from "#apiserver/ssa/field-set.js";
import { mergeValues, removeFields } from "#apiserver/ssa/merge.js";
import { type MergeType, checkValue, compareValuesOf, fieldSetOf } from "#apiserver/ssa/typed-value.js";
import { type OwnedWrite, type Owners, applyOwned, reconcileWithSchema, updateOwned } from "#apiserver/ssa/updater.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { assert, suite } from "../../../support/suite.js";
import { compilePublished, type PublishedSchema } from "./published-type.js";

interface PublishedTest {
  readonly test: string;
  /** Why it is not tried. */
  readonly lacks?: string;
  readonly calls?: readonly Call[];
  readonly steps?: readonly Step[];
  /** The Go type of what converts between versions. */
  readonly converter?: string;
  /** What the endpoint does not write, by version. */
  readonly ignored?: { readonly [version: string]: JsonObject };
}

type Call = { readonly type: number; readonly error: string | null } & (
  | { readonly op: "validate"; readonly value: JsonValue; readonly duplicates: boolean }
  | { readonly op: "set"; readonly value: JsonValue; readonly set: JsonObject }
  | { readonly op: "merge"; readonly live: JsonValue; readonly config: JsonValue; readonly value: JsonValue }
  | ({ readonly op: "compare"; readonly before: JsonValue; readonly after: JsonValue } & {
      readonly [what in "removed" | "modified" | "added"]: JsonObject;
    })
  | { readonly op: "remove"; readonly live: JsonValue; readonly set: JsonObject; readonly value: JsonValue }
  | { readonly op: "reconcile"; readonly before: JsonObject; readonly set: JsonObject | null }
);

interface Step {
  readonly op: "apply" | "update";
  readonly manager: string;
  readonly version: string;
  readonly force: boolean;
  /** By version, those that are served. */
  readonly types: { readonly [version: string]: number };
  readonly object: JsonObject | null;
  readonly conflicts?: readonly [manager: string, path: string][];
  readonly error?: string;
  readonly live: JsonObject | null;
  readonly managers: { readonly [name: string]: JsonValue };
}

const file = new URL("../../../../../fixtures/server-side-apply/published.jsonl", import.meta.url);
const [schemas = [], ...tests] = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as unknown) as [PublishedSchema[]?, ...PublishedTest[]];
const types = new Map<number, MergeType>();

function typeAt(index: number): MergeType {
  let type = types.get(index);
  if (type === undefined) types.set(index, (type = compilePublished(schemas[index] as PublishedSchema)));
  return type;
}

suite("server-side apply, tests of structured-merge-diff", (test) => {
  const groups = new Map<string, PublishedTest[]>();
  for (const each of tests) {
    const name = each.test.replace(/\/.*/, "");
    groups.set(name, [...(groups.get(name) ?? []), each]);
  }
  for (const [name, members] of groups) {
    const [reason] = members.flatMap(({ lacks }) => lacks ?? []);
    const tried = members.filter(({ lacks }) => lacks === undefined);
    if (tried.length > 0) test(`passes ${name} (${tried.length} cases)`, () => tried.forEach(runTest));
    if (reason !== undefined) test.skip(`passes ${name} (${members.length - tried.length} cases)`, reason);
  }
});

function runTest({ test, calls = [], steps = [], ...given }: PublishedTest): void {
  for (const call of calls) assert.equal(...outcomesOf(call), `${test}: ${call.op}`);
  if (steps.length > 0) runSteps(steps, { test, ...given });
}

/** Returns what a call comes to, and what it came to in the library. */
function outcomesOf(call: Call): [found: unknown, recorded: unknown] {
  const type = typeAt(call.type);
  switch (call.op) {
    case "validate": {
      const found = checkValue(type, call.value, { allowsDuplicates: call.duplicates });
      // The library's tests read YAML with keys of any kind, and print its maps so; the API server has none of those.
      const text = (call.error ?? "").replaceAll("map[interface {}]interface {}", "map[string]interface {}");
      const recorded = text.split("\n").flatMap((line) => (/^(errors:)?$/.test(line) ? [] : line.trim()));
      // The library names one undeclared field of a map, whichever comes first.
      const isNamed = (error: string) => recorded.includes(error) || !error.endsWith("field not declared in schema");
      return [recorded.length === 0 ? found : found.filter(isNamed), recorded];
    }
    case "set":
      return [encodeFieldsV1(fieldSetOf(type, call.value)), call.set];
    case "merge":
      return [mergeValues(type, call.live, call.config) ?? null, call.value];
    case "compare": {
      const { removed, modified, added } = compareValuesOf(type, call.before, call.after);
      return [[removed, modified, added].map(encodeFieldsV1), [call.removed, call.modified, call.added]];
    }
    case "remove":
      return [removeFields(type, call.live, decodeFieldsV1(call.set)) ?? null, call.value];
    case "reconcile":
      return [encodeFieldsV1(reconcileWithSchema(type, decodeFieldsV1(call.before))), call.set ?? call.before];
  }
}

function runSteps(steps: readonly Step[], { test, converter = "", ignored = {} }: PublishedTest): void {
  const convert = converterNamed(converter);
  let live: JsonObject = {};
  let owners: Owners = new Map();
  steps.forEach((step, index) => {
    const at = `${test}: step ${index}`;
    const { manager, version, force, object } = step;
    const typeOf = (name: string) => (step.types[name] === undefined ? undefined : typeAt(step.types[name]));
    const resetFields = ignored[version] === undefined ? FieldSet.empty : decodeFieldsV1(ignored[version]);
    live = convert(live, version);
    const write: OwnedWrite = { live, owners, manager, apiVersion: version, typeOf, resetFields, convert };
    if (step.op === "update") {
      live = object ?? {};
      owners = updateOwned(write, live);
    } else {
      const outcome = applyOwned(write, object ?? {}, { force });
      if (outcome.kind === "conflict") {
        const conflicts = outcome.conflicts.flatMap(({ manager, fields }) =>
          fields.paths().map((path) => `${manager} ${path}`),
        );
        assert.equal(conflicts.sort(), step.conflicts?.map((conflict) => conflict.join(" ")).sort(), at);
        return;
      }
      live = outcome.object ?? live;
      owners = outcome.owners;
    }
    assert.is(step.conflicts ?? step.error, undefined, `${at} succeeds`);
    assert.equal(live, step.live ?? {}, at);
    const found = [...owners].map(([name, { apiVersion, isApplied, set }]) => [
      name,
      { version: apiVersion, applied: isApplied, set: encodeFieldsV1(set) },
    ]);
    assert.equal(Object.fromEntries(found), step.managers, at);
  });
}

/** What the converters of the library's tests do. */
function converterNamed(converter: string): (value: JsonObject, version: string) => JsonObject {
  const name = converter.replace(/^.*\./, "");
  // The version is at the end of the names of fields.
  if (name === "renamingConverter")
    return (value, version) => withNames(value, (field) => field.replace(/v\d$/, version));
  // Below the root, fields have one letter, as often as the number of the version says.
  if (name === "repeatingConverter")
    return (value, version) =>
      Object.fromEntries(
        Object.entries(value).map(([field, member]) => [
          field,
          withNames(member, (below) => below.charAt(0).repeat(Number(version.slice(1)))),
        ]),
      );
  // A field is required in v2 and converted by that name: of an object without it nothing can be said in v1.
  if (name === "reliantFieldsConverter")
    return (value, version) => {
      const [from = "", to = ""] = version === "v1" ? RELIANT : RELIANT.toReversed();
      if (version === "v1" && Object.keys(value).length > 0 && !RELIANT.some((field) => field in value))
        throw new Error(`an object without ${RELIANT.join(" and ")} was converted`);
      return withNames(value, (field) => (field === from ? to : field));
    };
  return (value) => value;
}

const RELIANT = ["required_field_bar", "field_foo_rely_on_bar"];

function withNames<Value extends JsonValue>(value: Value, rename: (name: string) => string): Value {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [rename(name), withNames(member as JsonValue, rename)]);
  return Object.fromEntries(members) as Value;
}

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RawSchema, ResourceModel } from "#generator/model/project-model.js";
import { describe, emitKinds } from "#generator/emit/kinds.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { thingOf } from "../../../support/runtime/resource-models.js";

interface DiscoveredGroup {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly { readonly kind: string; readonly verbs: readonly string[] }[];
}

const readData = (path: string) => JSON.parse(readFileSync(join(repositoryRoot, path), "utf8")) as unknown;
const API = "io.k8s.api";
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

const ref = (name: string): RawSchema => ({ allOf: [{ $ref: `#/components/schemas/${name}` }], default: {} });
const objectOf = (properties: { readonly [name: string]: RawSchema }, rest: RawSchema = {}): RawSchema => ({
  type: "object",
  properties,
  ...rest,
});
const text: RawSchema = { type: "string" };

const definitions = new Map<string, RawSchema>([
  [
    `${API}.forests.v1.TreeSpec`,
    objectOf({
      children: { type: "array", items: ref(`${API}.forests.v1.TreeSpec`) },
      metadata: ref(`${META}.ObjectMeta`),
      size: ref("io.k8s.apimachinery.pkg.api.resource.Quantity"),
      soil: ref(`${API}.core.v1.Soil`),
      selector: ref(`${META}.LabelSelector`),
      template: ref(`${API}.forests.v1.Tree`),
    }),
  ],
  [`${API}.forests.v1.Tree`, objectOf({ kind: text, spec: ref(`${API}.forests.v1.TreeSpec`) })],
  [`${API}.core.v1.Soil`, objectOf({ depth: { type: "integer", default: 3 } }, { required: ["depth"] })],
  [`${API}.core.v1.Unused`, objectOf({ a: text })],
  [`${META}.ObjectMeta`, objectOf({ name: text })],
  [`${META}.LabelSelector`, objectOf({ matchLabels: { type: "object", additionalProperties: text } })],
]);

const kindOf = (kind: string, rest: Partial<ResourceModel> = {}): ResourceModel =>
  thingOf({}, { group: "forests.k8s.io", version: "v1", kind, isCustom: false, definitions, ...rest });

const tree = kindOf("Tree", { schema: objectOf({ spec: ref(`${API}.forests.v1.TreeSpec`) }) });

function emit(resources = [tree], all: ReadonlyMap<string, RawSchema> = definitions): ReadonlyMap<string, string> {
  return new Map(emitKinds(resources, all).map(({ path, content }) => [path, content]));
}

function linesOf(path: string): string[] {
  return (emit().get(path) ?? "").split("\n").map((line) => line.trim());
}

suite("package of built-in kinds", (test) => {
  test("has a module for each required group and version", () => {
    const modules = [...emit().keys()].filter((path) => !path.endsWith(".schema.ts"));
    assert.equal(modules, ["src/core/v1.ts", "src/forests.k8s.io/v1.ts", "src/meta/v1.ts"]);
  });

  test("has each used definition once and imports it in other modules", () => {
    const lines = linesOf("src/forests.k8s.io/v1.ts");
    for (const line of [
      'import type { Soil, SoilInput } from "../core/v1.js";',
      'import type { LabelSelector } from "../meta/v1.js";',
      "readonly children?: readonly TreeSpec[] | undefined;",
      "readonly metadata?: Partial<ObjectMeta> | undefined;",
      "readonly size?: IntOrString | undefined;",
      "readonly soil?: Soil | undefined;",
    ])
      assert.ok(lines.includes(line), line);
    assert.ok(linesOf("src/core/v1.ts").includes("export interface Soil {"));
    assert.not.match(emit().get("src/core/v1.ts") ?? "", /Unused/);
  });

  test("has input types without defaulted fields, also across modules", () => {
    const forests = emit().get("src/forests.k8s.io/v1.ts") ?? "";
    assert.match(emit().get("src/core/v1.ts") ?? "", /export interface SoilInput \{/);
    assert.match(forests, /export interface TreeSpecInput extends Omit<\s*TreeSpec,/);
    for (const line of ["readonly soil?: SoilInput | undefined;", "readonly spec?: TreeSpecInput | undefined;"])
      assert.ok(linesOf("src/forests.k8s.io/v1.ts").includes(line), line);
  });

  test("distinguishes a kind from its embedded template, which needs no apiVersion and kind", () => {
    const lines = linesOf("src/forests.k8s.io/v1.ts");
    for (const line of [
      "export class Tree {",
      "export interface EmbeddedTree {",
      "readonly template?: EmbeddedTree | undefined;",
    ])
      assert.ok(lines.includes(line), line);
  });

  test("exports the schema of each definition once, and references all definitions of a kind", () => {
    const own = emit().get("src/forests.k8s.io/v1.schema.ts") ?? "";
    assert.match(own, /^import \{ Soil \} from "\.\.\/core\/v1\.schema\.js";$/m);
    assert.match(own, /^import \{ LabelSelector, ObjectMeta \} from "\.\.\/meta\/v1\.schema\.js";$/m);
    assert.match(own, /^export const TreeSpec: Schema = \{$/m);
    assert.match(own, /definitions: \{ LabelSelector, ObjectMeta, Soil, Tree, TreeSpec \},?\s+\};/);
  });

  test("has doc comments for kinds, definitions, and fields", () => {
    const described = describe(definitions, {
      [`${API}.forests.v1.TreeSpec`]: { "": "What a tree is.", soil: "Where it stands.", other: "Nothing." },
    });
    const text = emit([{ ...tree, definitions: described }], described).get("src/forests.k8s.io/v1.ts") ?? "";
    assert.match(text, /\/\*\* What a tree is\. \*\/\nexport interface TreeSpec \{/);
    assert.match(text, / {2}\/\*\* Where it stands\. \*\/\n {2}readonly soil\?: Soil \| undefined;/);
    assert.not.match(text, /Nothing/);
  });

  test("requires a uid only for kinds that the API server stores", () => {
    const discovered = readData("generator/data/kubernetes-1.36-discovery.json") as readonly DiscoveredGroup[];
    const compared = discovered.flatMap(({ group, version, resources }) => {
      const file = join(repositoryRoot, `kinds/src/${group || "core"}/${version}.ts`);
      if (!existsSync(file)) return [];
      const classes = readFileSync(file, "utf8").split("\nexport class ").slice(1);
      return resources.flatMap(({ kind, verbs }) => {
        const text = classes.find((each) => each.startsWith(`${kind} `));
        if (text === undefined) return [];
        const isStored = verbs.includes("watch");
        return [{ kind: `${group}/${version} ${kind}`, isStored, hasUid: / & StoredMeta;/.test(text) }];
      });
    });
    const countOf = (isStored: boolean) => compared.filter((each) => each.isStored === isStored).length;
    assert.ok(countOf(true) > 50 && countOf(false) > 5, `${countOf(true)} stored, ${countOf(false)} not`);
    assert.equal(
      compared.filter(({ isStored, hasUid }) => isStored !== hasUid),
      [],
    );
  });

  test("rejects inline objects, and two definitions of one name", () => {
    const inline = kindOf("Tree", { schema: objectOf({ spec: objectOf({ a: text }) }) });
    assert.throws(() => emit([inline]), /TreeSpec has fields of its own, and is no definition/);
    const both = new Map([...definitions, [`${API}.core.v1.TreeSpec`, objectOf({ a: text })]]);
    const schema = objectOf({ one: ref(`${API}.core.v1.TreeSpec`), two: ref(`${API}.forests.v1.TreeSpec`) });
    assert.throws(() => emit([kindOf("Tree", { schema, definitions: both })], both), /two/);
  });
});

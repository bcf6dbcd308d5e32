import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import * as rulesOfModel from "#generator/check/rules.js";
import { explainField, listFieldNames } from "#generator/editor/explain-field.js";
import { explainRule, listRules } from "#generator/explain/explain-rule.js";
import { RULES } from "#generator/explain/rule-registry.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const rejected = join(repositoryRoot, "fixtures/rejected");
const printed = (name: string) => readFileSync(join(rejected, name, "expected.txt"), "utf8");
const rulesIn = (text: string) => [...text.matchAll(/(?:error|warning) ([a-z-]+):/g)].map(([, rule = ""]) => rule);

const sourceFolder = join(repositoryRoot, "generator/src");
const sources = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => ({ file: file.replaceAll("\\", "/"), text: readFileSync(join(sourceFolder, file), "utf8") }));

/** Where the JSON Schema of a spec has `accept`. */
const ACCEPTORS: { readonly [path: string]: string } = {
  "/properties/spec/properties": "controller",
  "/properties/spec/properties/rbac/properties/extra/items/properties": "extraRule",
  "/definitions/dependent/properties": "dependent",
  "/definitions/eventSource/properties": "eventSource",
};

const names = RULES.map(({ id }) => id);

suite("explain", (test) => {
  test("lists every defined rule once", () => {
    const defined = sources.flatMap(({ text }) =>
      [...text.matchAll(/ = defineRule\(\{\s+id: "([a-z-]+)"/g)].map(([, id = ""]) => id),
    );
    assert.equal([...names].sort(), defined.sort());
    assert.is(new Set(names).size, names.length);
  });

  test("lists every rule that the fixtures in rejected report", () => {
    const printedRules = readdirSync(rejected).flatMap((name) => rulesIn(printed(name)));
    assert.equal(
      printedRules.filter((rule) => !names.includes(rule)),
      [],
    );
  });

  test("lists only rules that are used outside of their definition", () => {
    const isDefinition = (file: string) => file.endsWith("/rules.ts") || file === "explain/rule-registry.ts";
    const checks = sources
      .filter(({ file }) => !isDefinition(file))
      .map(({ text }) => text.replaceAll(/^import [^;]*;/gm, "").replaceAll(/export const \w+ = defineRule/g, ""))
      .join("\n");
    const used = new Set(checks.match(/\b[A-Z][A-Z_]+\b/g));
    const unused = names.filter((name) => !used.has(name.toUpperCase().replaceAll("-", "_")));
    assert.equal(unused, []);
  });

  test("has a fixture in rejected for every rule of the model", () => {
    const reported = new Set(readdirSync(rejected).flatMap((name) => rulesIn(printed(name))));
    const rules = Object.values(rulesOfModel);
    assert.ok(rules.length > 40, `${rules.length} rules`);
    assert.equal(
      rules.filter(({ id }) => !reported.has(id)),
      [],
    );
  });

  test("describes every field of a spec at each of its paths, and suggests similar names", async () => {
    const textOf = async (name: string) => (await explainField(name)) ?? "";
    for (const [name, ...parts] of [
      ["onImmutable", "spec.dependents.NAME.onImmutable\n", "Value: fail or recreate", "Default: fail, as a deletion"],
      ["formerFieldManagers", "spec.controller.formerFieldManagers\n", 'Example: formerFieldManagers: ["web-operator"'],
      ["existing", "spec.dependents.NAME.existing\n", "refuse, adopt, or an object"],
      ["retry", "spec.controller.retry\n", "spec.dependents.NAME.retry\n"],
      ["spec.controller.retry.maxInterval", "Value: a duration such as 2s", "The maximum delay."],
      ["resource", "spec.removed.NAME.resource\n"],
    ] as const)
      for (const part of parts) assert.match(await textOf(name), part, name);
    const fields = await listFieldNames();
    for (const name of fields) assert.match(await textOf(name), /^ {2}\S/m, name);
    assert.equal(
      fields.filter((name) => names.includes(name)),
      [],
      "a name is a rule or a field",
    );
    assert.equal(explainRule("onImutable", fields), {
      problem: 'rule or field "onImutable" not found; did you mean "onImmutable"?',
    });
  });

  test("names examples that trigger the rule", () => {
    const wrong = RULES.filter(
      ({ id, page: { example } }) => example !== undefined && !rulesIn(printed(example)).includes(id),
    );
    assert.equal(wrong, []);
  });

  test("lists the same acceptors of each rule as the JSON Schema of a spec", () => {
    const schema = readFileSync(join(repositoryRoot, "generator/data/workflow.schema.json"), "utf8");
    const acceptable: string[] = [];
    const visit = (node: unknown, path: string): void => {
      if (typeof node !== "object" || node === null) return;
      const { accept } = node as { accept?: { items?: { properties?: { rule?: { enum?: string[] } } } } };
      for (const rule of accept?.items?.properties?.rule?.enum ?? []) acceptable.push(`${ACCEPTORS[path]} ${rule}`);
      for (const [key, child] of Object.entries(node)) visit(child, `${path}/${key}`);
    };
    visit(JSON.parse(schema), "");
    const stated = RULES.flatMap(({ id, acceptedBy }) => acceptedBy.map((acceptor) => `${acceptor} ${id}`));
    assert.equal(stated.sort(), acceptable.sort());
  });

  test("describes where a rule can be accepted only for rules that can be", () => {
    const subjectOf = (rule: string) => {
      const explained = explainRule(rule);
      return /To accept it, add to (.*): accept:/.exec("text" in explained ? explained.text : "")?.[1];
    };
    for (const { id, acceptedBy } of RULES) assert.is(subjectOf(id) !== undefined, acceptedBy.length > 0, id);
    assert.is(subjectOf("inexact-number"), "the spec of the controller");
    assert.is(subjectOf("cleanup-input"), "the dependent");
    assert.is(subjectOf("powerful-right"), "the dependent, the event source or the rule of rbac.extra");
  });

  test("lists every rule, and suggests the closest one for an unknown name", () => {
    assert.is(listRules().split("\n").length, RULES.length);
    assert.match(JSON.stringify(explainRule("unknown-dependant")), "unknown-dependent");
    for (const rule of names) assert.is("text" in explainRule(rule), true);
  });
});

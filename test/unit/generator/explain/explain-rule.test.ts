import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { explainField, listFieldNames } from "#generator/editor/explain-field.js";
import { explainRule, listRules } from "#generator/explain/explain-rule.js";
import { RULE_PAGES } from "#generator/explain/rule-pages.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const rejected = join(repositoryRoot, "fixtures/rejected");
const printed = (name: string) => readFileSync(join(rejected, name, "expected.txt"), "utf8");
const rulesIn = (text: string) => [...text.matchAll(/(?:error|warning) ([a-z-]+):/g)].map(([, rule = ""]) => rule);

suite("explain", (test) => {
  test("has a page for every rule that the code or a fixture names", () => {
    const folder = join(repositoryRoot, "generator/src");
    const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const inCode = sources.flatMap((file) =>
      [...readFileSync(join(folder, file), "utf8").matchAll(/\brule: "([a-z-]+)"/g)].map(([, rule = ""]) => rule),
    );
    const named = new Set([...inCode, ...readdirSync(rejected).flatMap((name) => rulesIn(printed(name)))]);
    assert.equal(
      [...named].filter((rule) => !RULE_PAGES.has(rule)),
      [],
    );
    assert.equal(
      [...RULE_PAGES.keys()].filter((rule) => !named.has(rule)),
      [],
    );
  });

  test("explains every field of a spec in each place where it stands", async () => {
    const textOf = async (name: string) => (await explainField(name)) ?? "";
    for (const [name, ...parts] of [
      ["onImmutable", "spec.dependents.NAME.onImmutable\n", "Value: fail or recreate", "Default: fail, as a deletion"],
      ["formerFieldManagers", "spec.controller.formerFieldManagers\n", 'Example: formerFieldManagers: ["web-operator"'],
      ["existing", "spec.dependents.NAME.existing\n", "refuse or adopt"],
      ["retry", "spec.controller.retry\n", "spec.dependents.NAME.retry\n"],
      ["spec.controller.retry.maxInterval", "Value: a duration such as 2s", "The longest wait."],
      ["resource", "spec.removed.NAME.resource\n"],
    ] as const)
      for (const part of parts) assert.match(await textOf(name), part, name);
    const fields = await listFieldNames();
    for (const name of fields) assert.match(await textOf(name), /^ {2}\S/m, name);
    assert.equal(
      fields.filter((name) => RULE_PAGES.has(name)),
      [],
      "a name is a rule or a field",
    );
    assert.equal(explainRule("onImutable", fields), {
      problem: 'there is no rule or field of a spec "onImutable"; did you mean "onImmutable"?',
    });
  });

  test("names examples that trigger the rule", () => {
    const wrong = [...RULE_PAGES].filter(
      ([rule, { example }]) => example !== undefined && !rulesIn(printed(example)).includes(rule),
    );
    assert.equal(wrong, []);
  });

  test("says of each rule that a spec accepts where it is accepted, and of no other", () => {
    const schema = readFileSync(join(repositoryRoot, "generator/data/workflow.schema.json"), "utf8");
    const acceptable = new Map<string, string[]>();
    const visit = (node: unknown, path: string): void => {
      if (typeof node !== "object" || node === null) return;
      const { accept } = node as { accept?: { items?: { properties?: { rule?: { enum?: string[] } } } } };
      for (const rule of accept?.items?.properties?.rule?.enum ?? [])
        acceptable.set(rule, [...(acceptable.get(rule) ?? []), path]);
      for (const [key, child] of Object.entries(node)) visit(child, `${path}/${key}`);
    };
    visit(JSON.parse(schema), "");
    for (const rule of RULE_PAGES.keys()) {
      const explained = explainRule(rule);
      const [, subject] = /To accept it, give (.*): accept:/.exec("text" in explained ? explained.text : "") ?? [];
      const places = acceptable.get(rule) ?? [];
      assert.is(subject !== undefined, places.length > 0, rule);
      const isOfSpec = places.some((path) => path.endsWith("/spec/properties"));
      assert.is(subject === "the spec of the controller", isOfSpec, rule);
    }
  });

  test("lists every rule, and names the nearest of a rule that there is not", () => {
    assert.is(listRules().split("\n").length, RULE_PAGES.size);
    assert.match(JSON.stringify(explainRule("unknown-dependant")), "unknown-dependent");
    for (const rule of RULE_PAGES.keys()) assert.is("text" in explainRule(rule), true);
  });
});

import { addYamlEntry } from "#generator/read/yaml/edit-yaml.js";
import { parseAllDocuments } from "yaml";
import { assert, suite } from "../../../support/suite.js";

const entry = {
  document: "b",
  section: "dependents",
  name: "service",
  value: { resource: "v1/Service", dependsOn: ["web"] },
};
const HEAD = "# one\nmetadata: { name: a }\nspec: {}\n---\nmetadata: { name: b }\nspec:\n";
const INLINE = "service: { resource: v1/Service, dependsOn: [web] }";
const BLOCK = "service:\n      resource: v1/Service\n      dependsOn: [web]\n";

/** What stands below `spec`, and what it becomes. */
const CASES: readonly (readonly [before: string, after: string])[] = [
  [
    "  dependents:\n    web: { resource: v1/Pod } # a pod\n    # more to come\n  rbac: x\n",
    `  dependents:\n    web: { resource: v1/Pod } # a pod\n    ${INLINE}\n    # more to come\n  rbac: x\n`,
  ],
  [
    "  dependents:\n    web:\n      resource: v1/Pod\n      readyPostcondition:\n        when: a # why\n\n    # deployment:\n    #   resource: x\n",
    `  dependents:\n    web:\n      resource: v1/Pod\n      readyPostcondition:\n        when: a # why\n    ${BLOCK}\n    # deployment:\n    #   resource: x\n`,
  ],
  // What is commented out belongs where it is indented to.
  [
    "  eventSources:\n    a: { inbound: {} }\n    # b: { inbound: {} }\n  # the end\n",
    `  eventSources:\n    a: { inbound: {} }\n    # b: { inbound: {} }\n  dependents:\n    ${INLINE}\n  # the end\n`,
  ],
  ["  dependents: { web: { resource: v1/Pod } }\n", `  dependents: { web: { resource: v1/Pod }, ${INLINE} }\n`],
  ["  dependents:\n  rbac: x\n", `  dependents:\n    ${INLINE}\n  rbac: x\n`],
  ["  dependents: {} # none yet\n  rbac: x\n", `  dependents: # none yet\n    ${INLINE}\n  rbac: x\n`],
  ["  primary: x # the kind\n", `  primary: x # the kind\n  dependents:\n    ${INLINE}\n`],
  ["  dependents:\n    web: { resource: v1/Pod }", `  dependents:\n    web: { resource: v1/Pod }\n    ${INLINE}`],
  [
    "  dependents:\r\n    web: { resource: v1/Pod }\r\n  rbac: x\r\n",
    `  dependents:\r\n    web: { resource: v1/Pod }\r\n    ${INLINE}\r\n  rbac: x\r\n`,
  ],
];

/** The comments of a text, and its words outside of them; "{}" and "[]" may get members. */
function wordsOf(text: string): string[] {
  return text.replaceAll(/\{\s*\}|\[\s*\]/g, "").match(/#.*(?=\r?\n|$)|[^\s{}[\],#]+/g) ?? [];
}

function containsInOrder(all: readonly string[], some: readonly string[]): boolean {
  let next = 0;
  for (const word of all) if (word === some[next]) next++;
  return next === some.length;
}

suite("addYamlEntry", (test) => {
  for (const [before, after] of CASES)
    test(`adds an entry to ${JSON.stringify(before)}`, () => {
      assert.is(addYamlEntry(HEAD + before, entry), HEAD + after);
    });

  test("changes nothing if the section is shared, not a mapping, or missing", () => {
    for (const spec of [
      "  dependents: &shared\n    web: { resource: v1/Pod }\n  other: *shared\n",
      "  dependents: *missing\n",
      "  dependents: [web]\n",
    ])
      assert.is(addYamlEntry(HEAD + spec, entry), undefined, spec);
    assert.is(addYamlEntry(HEAD, { ...entry, document: "c" }), undefined);
  });

  test("keeps every comment, key, and item of the text in its order, for every name, value, and section", () => {
    const values = [entry.value, { inbound: {} }, { resource: "a: b # c", dependsOn: [] }];
    for (const [before] of CASES)
      for (const section of ["dependents", "eventSources"])
        for (const value of values)
          for (const name of ["service", "yes", "a-b"]) {
            const given = HEAD + before;
            const changed = addYamlEntry(given, { ...entry, section, name, value }) ?? "";
            assert.is.not(changed, "", given);
            assert.ok(containsInOrder(wordsOf(changed), wordsOf(given)), changed);
            const { spec } = parseAllDocuments(changed)[1]!.toJS() as { spec: { [name: string]: object } };
            assert.equal((spec[section] as { [name: string]: unknown })[name], value);
          }
  });
});

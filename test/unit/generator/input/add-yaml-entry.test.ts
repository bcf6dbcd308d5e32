import { addYamlEntry } from "#generator/read/yaml/edit-yaml.js";
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

  test("keeps every comment", () => {
    for (const [before] of CASES) {
      const lines = (addYamlEntry(HEAD + before, entry) ?? "").split(/\r?\n/);
      const comments = (HEAD + before).split(/\r?\n/).flatMap((line) => /#.*$/.exec(line) ?? []);
      for (const comment of comments)
        assert.ok(
          lines.some((line) => line.endsWith(comment)),
          comment,
        );
    }
  });
});

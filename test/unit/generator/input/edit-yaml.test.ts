import { setYamlField } from "#generator/read/yaml/edit-yaml.js";
import { assert, suite } from "../../../support/suite.js";

const edit = {
  document: "b",
  path: ["spec", "eventSources", "pods"],
  key: "cache",
  value: { paths: ["status.phase"] },
};
const HEAD = "metadata: { name: b }\nspec:\n";

/** What stands for the event source, and what it becomes. */
const CASES: readonly (readonly [before: string, after: string])[] = [
  [
    "  eventSources:\n    pods:\n      resource: v1/Pod # all of them\n      # By label.\n      mapping: x\n",
    "  eventSources:\n    pods:\n      resource: v1/Pod # all of them\n      cache: { paths: [status.phase] }\n      # By label.\n      mapping: x\n",
  ],
  [
    "  eventSources: { pods: { resource: v1/Pod } }\n",
    "  eventSources: { pods: { resource: v1/Pod, cache: { paths: [status.phase] } } }\n",
  ],
  [
    "  eventSources:\n    pods: {\n      resource: v1/Pod, # all\n    }\n",
    "  eventSources:\n    pods: {\n      resource: v1/Pod, cache: { paths: [status.phase] }, # all\n    }\n",
  ],
  [
    "  eventSources:\n    pods:\n      resource: v1/Pod\n      cache:   metadata   # little\n      mapping: x\n",
    "  eventSources:\n    pods:\n      resource: v1/Pod\n      cache: { paths: [status.phase] }   # little\n      mapping: x\n",
  ],
  [
    "  eventSources:\n    pods:\n      cache:\n        paths:\n          - spec\n\n      resource: v1/Pod\n",
    "  eventSources:\n    pods:\n      cache: { paths: [status.phase] }\n\n      resource: v1/Pod\n",
  ],
  [
    "  eventSources:\n    pods:\n      resource: v1/Pod",
    "  eventSources:\n    pods:\n      resource: v1/Pod\n      cache: { paths: [status.phase] }",
  ],
  [
    "  eventSources:\r\n    pods:\r\n      resource: v1/Pod\r\n      mapping: x\r\n",
    "  eventSources:\r\n    pods:\r\n      resource: v1/Pod\r\n      cache: { paths: [status.phase] }\r\n      mapping: x\r\n",
  ],
];

suite("setYamlField", (test) => {
  test("sets a field in place and keeps the formatting of everything else", () => {
    for (const [before, after] of CASES) assert.is(setYamlField(HEAD + before, edit), HEAD + after);
  });

  test("edits only the document with the given name", () => {
    const other = "metadata: { name: a }\nspec: { eventSources: { pods: { resource: v1/Pod } } }\n---\n";
    const [[before, after]] = CASES as [(typeof CASES)[number]];
    assert.is(setYamlField(other + HEAD + before, edit), other + HEAD + after);
    assert.is(setYamlField(other, edit), undefined);
  });

  test("changes nothing in a mapping that cannot be edited in place", () => {
    for (const spec of [
      "  usual: &usual { resource: v1/Pod }\n  eventSources: { pods: *usual }\n",
      "  eventSources: { pods: null }\n",
      "  eventSources: [pods]\n",
      "  eventSources:\n    pods:\n      ? resource\n      : v1/Pod\n",
    ])
      assert.is(setYamlField(HEAD + spec, edit), undefined, spec);
  });

  test("keeps JSON valid", () => {
    const json = (pods: object) =>
      JSON.stringify({ metadata: { name: "b" }, spec: { eventSources: { pods } } }, undefined, 2);
    for (const before of [{ resource: "v1/Pod" }, { resource: "v1/Pod", cache: "metadata" }]) {
      const after = setYamlField(json(before), edit);
      assert.equal(JSON.parse(after ?? "null"), JSON.parse(json({ ...before, cache: edit.value })));
    }
  });

  test("quotes strings that YAML would parse differently", () => {
    const before = `${HEAD}  eventSources: { pods: { resource: v1/Pod } }\n`;
    const labelSelector = setYamlField(before, { ...edit, key: "labelSelector", value: "tier in (a, b),x" });
    assert.match(labelSelector ?? "", /labelSelector: "tier in \(a, b\),x" \}/);
  });
});

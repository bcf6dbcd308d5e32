import { compareCrds } from "#generator/diff/compare-crds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { crdWith, diffOf, readCrdChanges, schemaOf } from "../../../support/crds/crd-changes.js";
import { assert, suite } from "../../../support/suite.js";

suite("CRD diff", (test) => {
  for (const change of readCrdChanges())
    test(`reports ${change.name} as ${change.says}`, () => {
      const found = diffOf(crdWith(schemaOf(change, "before")), crdWith(schemaOf(change, "after")));
      const lines = found.map(({ effect, path, message }) => `${effect} ${path}: ${message}`).join("\n");
      if (change.says === "none") return assert.equal(found, []);
      const consequences = found.map(({ effect, consequence }) => consequence ?? effect);
      assert.ok(found.length > 0, "nothing");
      if (change.says === "compatible") assert.equal([...new Set(consequences)], ["compatible"], lines);
      else assert.ok(consequences.includes(change.says as never), lines);
    });

  for (const [keyword, values] of [
    ["default", ["9007199254740992", "9007199254740993"]],
    ["default", ["9223372036854775807", "9223372036854775806"]],
    ["enum", ["[1, 9007199254740992]", "[1, 9007199254740993]"]],
  ] as const)
    test(`reports a changed last digit of an integer beyond 2^53: ${keyword} ${values.join(" → ")}`, () => {
      const crdOf = (value: string, format: "json" | "yaml") => {
        const text = JSON.stringify(
          crdWith({ type: "object", properties: { f: { type: "integer", [keyword]: "<>" } } }),
        );
        const written = text.replace('"<>"', value);
        return readCrds({ file: `a.${format}`, text: format === "json" ? written : `# YAML\n${written}` }).crds;
      };
      for (const format of ["json", "yaml"] as const) {
        const [before, after] = values.map((value) => crdOf(value, format));
        const found = compareCrds(before!, after!);
        assert.ok(found.length > 0, "nothing");
        for (const value of values.join().match(/\d{16,}/g) ?? [])
          assert.match(found.map(({ message }) => message).join("\n"), value);
        assert.equal(compareCrds(before!, before!), []);
      }
    });

  for (const change of readCrdChanges().filter(({ says }) => says === "none"))
    test(`ignores ${change.name} in reverse`, () => {
      assert.equal(diffOf(crdWith(schemaOf(change, "after")), crdWith(schemaOf(change, "before"))), []);
    });
});

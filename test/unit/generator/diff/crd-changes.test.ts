import { crdWith, diffOf, readCrdChanges, schemaOf } from "../../../support/crds/crd-changes.js";
import { assert, suite } from "../../../support/suite.js";

suite("gen-operator diff of a schema", (test) => {
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

  for (const change of readCrdChanges().filter(({ says }) => says === "none"))
    test(`does not report ${change.name} the other way round`, () => {
      assert.equal(diffOf(crdWith(schemaOf(change, "after")), crdWith(schemaOf(change, "before"))), []);
    });
});

import { extractKind } from "#generator/read/kinds.js";
import { assert, suite } from "../../../support/suite.js";

suite("extractKind", (test) => {
  test("keeps integers beyond 2^53 exactly", () => {
    const kind = { group: "fleet.example.io", version: "v1", kind: "Ship" };
    const text = JSON.stringify({
      openapi: "3.0.0",
      components: {
        schemas: {
          Ship: { "x-kubernetes-group-version-kind": [kind], properties: { a: { type: "integer", default: "<>" } } },
        },
      },
    });
    for (const value of ["9007199254740993", "9223372036854775807", "-9223372036854775808"]) {
      const of = { ...kind, plural: "ships", isNamespaced: true, hasStatusSubresource: false, verbs: ["get"] };
      assert.match(extractKind(text.replace('"<>"', value), of) ?? "", `"default": ${value}\n`);
    }
  });
});

import { ConfigMap, WebPage } from "#webpage/generated/index.js";
import { assert, suite } from "../../../support/suite.js";

const metadata = { name: "example", namespace: "default" };

suite("generated class", (test) => {
  test("creates plain JSON with apiVersion and kind first, and with the defaults of the schema", () => {
    const page = WebPage.create({ metadata, spec: { html: "x" } });
    assert.is(
      JSON.stringify(page),
      JSON.stringify({
        apiVersion: "example.com/v1",
        kind: "WebPage",
        metadata,
        spec: { html: "x", replicas: 1, exposed: false },
      }),
    );
    assert.is(Object.getPrototypeOf(page), Object.prototype);
  });

  test("recognizes objects of its kind", () => {
    const page: unknown = WebPage.create({ metadata, spec: { html: "x" } });
    assert.equal(
      [WebPage.is(page), ConfigMap.is(page), WebPage.is(null), WebPage.is({ kind: "WebPage" })],
      [true, false, false, false],
    );
  });

  test("parses valid objects and reports every invalid path", () => {
    const valid = WebPage.create({ metadata, spec: { html: "x", resources: { cpu: 1 } } });
    assert.is(WebPage.parse(valid), valid);
    const wrong = {
      ...valid,
      spec: { replicas: -1, exposed: "yes", hots: "x" },
      status: { conditions: [{ type: "Ready" }] },
    };
    assert.throws(
      () => WebPage.parse(wrong),
      (error: Error) =>
        error.name === "SchemaError" &&
        ["spec.html", "spec.replicas", "spec.exposed", "spec.hots", "status.conditions[0].reason"].every((path) =>
          error.message.includes(path),
        ),
    );
  });

  test("has a definition with the facts that the runtime needs", () => {
    const { schema: _schema, ...facts } = WebPage.definition;
    assert.equal(facts, {
      group: "example.com",
      version: "v1",
      kind: "WebPage",
      plural: "webpages",
      scope: "Namespaced",
      apiVersion: "example.com/v1",
      hasStatusSubresource: true,
      isCustom: true,
    });
  });
});

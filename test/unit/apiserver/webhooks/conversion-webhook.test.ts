import type { JsonObject } from "#apiserver/json.js";
import { conversionWebhooks } from "#apiserver/webhooks/conversion-webhook.js";
import { assert, suite } from "../../../support/suite.js";

const definition = { spec: { conversion: { webhook: { conversionReviewVersions: ["v1"], clientConfig: {} } } } };
const objectOf = (index: number, padding = ""): JsonObject => ({
  apiVersion: "example.com/v1",
  kind: "Widget",
  metadata: { name: `w-${index}` },
  padding,
});

/** Converts objects, and returns how many there were in each call. */
async function batchesFor(objects: readonly JsonObject[]): Promise<number[]> {
  const sizes: number[] = [];
  const ask = conversionWebhooks({
    post(_target, { apiVersion, kind, request }) {
      const { uid, objects } = request as unknown as { uid: string; objects: JsonObject[] };
      sizes.push(objects.length);
      const convertedObjects = objects.map((object) => ({ ...object, apiVersion: "example.com/v2" }));
      const response = { uid, result: { status: "Success" }, convertedObjects };
      return Promise.resolve({ status: 200, contentType: "", body: JSON.stringify({ apiVersion, kind, response }) });
    },
  });
  const forms = await ask(definition, { objects, apiVersion: "example.com/v2" });
  const expected = objects.map((object) => ({ ...object, apiVersion: "example.com/v2" }));
  assert.equal(forms, expected);
  return sizes;
}

suite("conversion webhook", (test) => {
  test("receives at most 100 objects per request, in order", async () => {
    assert.equal(await batchesFor(Array.from({ length: 250 }, (_, index) => objectOf(index))), [100, 100, 50]);
  });

  test("receives at most 1 MB of objects per request, or one larger object", async () => {
    const large = "x".repeat(400_000);
    const objects = [
      objectOf(0, large),
      objectOf(1, large),
      objectOf(2, large),
      objectOf(3, large.repeat(3)),
      objectOf(4),
    ];
    assert.equal(await batchesFor(objects), [2, 1, 1, 1]);
  });
});

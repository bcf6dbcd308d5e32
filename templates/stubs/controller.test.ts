import assert from "node:assert/strict";
import { test } from "node:test";
import { startApiServer, waitFor } from "@gen-operator/apiserver";
import { createOperator } from "@gen-operator/runtime";
import { __controllerName__, __Resources__ } from "../src/generated/index.js";

test("creates the __dependent__ of a __Primary__", async () => {
  await using server = await startApiServer({ crds: __crds__, simulate: true });
  await using operator = createOperator({ controllers: [__controllerName__], connection: server });
  await operator.start();

  await operator.client.create(__Primary__, __primary__);

  const __live__ = await waitFor("the __dependent__", () => operator.client.get(__Resource__, __ref__));
  assert.equal(__live__.metadata.name, __name__);
});

import { once } from "node:events";
import { connect } from "node:net";
import { startApiServer } from "#apiserver/server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";
import { startWebhookServer } from "../../support/api/webhook-server.js";

suite("API server close", (test) => {
  for (const tls of [true, false]) {
    test(`does not wait for a client that has connected and sent nothing${tls ? ", not even a TLS handshake" : ""}`, async () => {
      const server = await startApiServer({ tls });
      const { hostname, port } = new URL(server.url);
      const client = connect(Number(port), hostname);
      await once(client, "connect");
      // The server takes a connection in a later turn than the client.
      await fetch(`http://${hostname}:${port}/`).catch(() => undefined);
      const broken = once(client, "close");
      client.on("error", () => undefined).resume();
      await server.close();
      assert.equal(await broken, [false]);
    });
  }

  test("closes idle connections to webhooks", async () => {
    await using hooks = await startWebhookServer(() => ({ response: { allowed: true } }));
    const webhook = {
      name: "hook.example.com",
      clientConfig: { url: hooks.url, caBundle: hooks.caBundle },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    };
    const kind = "ValidatingWebhookConfiguration";
    const apiVersion = "admissionregistration.k8s.io/v1";
    const server = await startApiServer({
      objects: [{ apiVersion, kind, metadata: { name: "a" }, webhooks: [webhook] }],
    });
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };
    await apiRequestOrThrow(server, "POST /api/v1/namespaces/default/configmaps", { body });
    assert.is(hooks.openConnections(), 1);
    await server.close();
    await waitFor("the connection is closed", () => Promise.resolve(hooks.openConnections() === 0));
  });
});

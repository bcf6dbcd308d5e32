import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";

suite("simulated Pod without TLS", (test) => {
  test("runs although no CA exists for its token volume", async () => {
    const server = await startApiServer({ tls: false, simulate: true });
    try {
      const pods = "/api/v1/namespaces/default/pods";
      const body = { metadata: { name: "one" }, spec: { containers: [{ name: "main", image: "main" }] } };
      // The account that the Pod runs as comes a moment after the server.
      await waitFor("the Pod is created", () =>
        apiRequestOrThrow(server, `POST ${pods}`, { body }).then(
          () => true,
          () => false,
        ),
      );
      const phaseOf = async () => {
        const { status } = (await apiRequestOrThrow(server, `GET ${pods}/one`)) as { status?: { phase?: string } };
        return status?.phase;
      };
      await waitFor("the Pod runs", async () => (await phaseOf()) === "Running");
      assert.is(await phaseOf(), "Running");
    } finally {
      await server.close();
    }
  });
});

// Events of the simulated controllers when their requests get lost.
import { startSimulation } from "#apiserver/simulate/index.js";
import { startApiServer } from "#apiserver/server.js";
import type { FaultRule } from "#apiserver/faults/fault-injection.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";

const CORE = "/api/v1/namespaces/default";
const FAULTS: Record<string, FaultRule> = {
  "a broken connection": { disconnect: true },
  "429 Too Many Requests": { answer: { status: 429, reason: "TooManyRequests" } },
  "500 Internal Server Error": { answer: { status: 500, reason: "InternalError" } },
};

suite("event recorder of the simulation", (test) => {
  for (const [name, fault] of Object.entries(FAULTS))
    test(`retries after ${name}`, async () => {
      await using server = await startApiServer({ tls: false });
      await using _simulation = await startSimulation(server, { only: ["pods", "events"], unref: true });
      const active = server.faults.add({ kind: "Event", verb: "create", times: 2, ...fault });
      const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
      await apiRequestOrThrow(server, `POST ${CORE}/pods`, { body: pod });
      const reasons = await waitFor("there are four Events", async () => {
        const { items } = await apiRequestOrThrow<{ items: { reason: string }[] }>(server, `GET ${CORE}/events`);
        return items.length >= 4 && items.map(({ reason }) => reason);
      });
      assert.equal(reasons.toSorted(), ["Created", "Pulled", "Scheduled", "Started"]);
      assert.is(active.hits, 2);
    });
});

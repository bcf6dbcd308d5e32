// A process of the sample with resources outside of Kubernetes that ends at the worst moment.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Tenant, Zone } from "#external/src/generated/index.js";
import { repositoryRoot } from "../../../support/repository.js";
import { isThorough, ONLY_THOROUGH } from "../../../support/runs.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { isRealApiServer } from "../../../support/api/api-server.js";
import { creationsIn, openWorld, startServer } from "./external-run.js";

const MAIN = join(repositoryRoot, "fixtures/samples/external/dist/src/main.js");
/** For what starts processes. */
const SLOW = { timeoutMs: 60_000 };

suite("external sample", (test) => {
  if (!isThorough && !isRealApiServer) return test.skip("all tests", ONLY_THOROUGH);
  const server = shared(startServer);

  for (const collection of ["accounts", "users", "registrations"])
    test(
      `creates nothing twice and leaks nothing if it is killed during the creation of ${collection}`,
      async () => {
        await using world = await openWorld(await server());
        const { client, console, run } = world;
        await run.operator.stop();
        const { kubeconfig } = await server();
        const env = { ...process.env, KUBECONFIG: kubeconfig, CONSOLE_URL: console.url, LOG_LEVEL: "silent" };
        const child = spawn(process.execPath, [MAIN], { env, stdio: "ignore" });
        await using _child = { [Symbol.asyncDispose]: async () => void child.kill("SIGKILL") };
        const ended = once(child, "exit");
        // The console has done it, and the id is kept nowhere.
        console.onChange = (change) => {
          if (change.startsWith(`POST ${collection}`)) child.kill("SIGKILL");
        };
        const tenant = await world.tenant("one", { users: { ann: "admin" } });
        const zone = await world.zone("home");
        await ended;
        await using _ = await world.start();
        await world.until(Tenant, "one", ({ status }) => status?.userIds?.["ann"] !== undefined);
        const { status } = await world.until(Zone, "home", (each) => each.status?.registrationId !== undefined);
        assert.equal([...console.all("registrations").keys()], [status?.registrationId]);
        const creations = creationsIn(world);
        assert.ok(
          Object.values(creations).every((count) => count === 1),
          JSON.stringify(creations),
        );
        await client.delete(Tenant, tenant.metadata);
        await client.delete(Zone, zone.metadata);
        await world.untilGone(Tenant, "one");
        await world.untilGone(Zone, "home");
        for (const name of Object.keys(creations)) assert.is(console.all(name).size, 0, name);
      },
      SLOW,
    );
});

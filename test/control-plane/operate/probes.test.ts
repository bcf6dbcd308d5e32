// The probes of an operator that a real API server lets watch nothing.
import { waitFor } from "#apiserver/wait-for.js";
import { installCrd } from "../../support/api/api-server.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { freePorts } from "../../support/machine/free-ports.js";
import { assert, suite } from "../../support/suite.js";
import { pageCrd } from "../../integration/runtime/page-operator.js";
import { openStage, untilLeading } from "./replica.js";

suite("probes on kube-apiserver", (test) => {
  test(
    "readyz returns 503 and names the source while all watches return 403, and livez stays 200",
    async () => {
      await using plane = await borrowControlPlane();
      await installCrd(plane, pageCrd);
      const stage = await openStage(plane, "probed");
      const [port = 0] = await freePorts(1);
      await using replica = await stage.startReplica({ options: `healthProbeBindAddress: "127.0.0.1:${port}"` });
      await untilLeading(replica);
      const ask = async (path: string) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`);
        return { status: response.status, text: await response.text() };
      };
      await waitFor("it is ready", async () => (await ask("/readyz")).status === 200);
      replica.proxy.treat(({ path }) => (/[?&](watch=true|limit=)/.test(path) ? { status: 403 } : "pass"));
      replica.proxy.cut();
      const isNamed = /^\[-\]controller\/page\/primary failed: .*403/m;
      await waitFor("it says so", async () => isNamed.test((await ask("/readyz?verbose")).text), { timeoutMs: 30_000 });
      assert.is((await ask("/readyz")).status, 503);
      assert.equal(await ask("/livez"), { status: 200, text: "ok" });
      replica.proxy.treat(() => "pass");
      await waitFor("it is ready again", async () => (await ask("/readyz")).status === 200, { timeoutMs: 60_000 });
    },
    { timeoutMs: 120_000 },
  );
});

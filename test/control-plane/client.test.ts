// What only a real API server carries out or refuses: evictions, and requests as somebody else.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { messageOf } from "#runtime/base/logger.js";
import { requesterOf, ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { createInClusterConnection } from "#runtime/client/load-connection.js";
import { createCertificates } from "../support/api/certificates.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import { builtinDefinition, classOf } from "../support/kinds/kind-definitions.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const Pod = classOf(builtinDefinition("v1", "Pod"));
const DisruptionBudget = classOf(builtinDefinition("policy/v1", "PodDisruptionBudget"));
const ServiceAccount = classOf(builtinDefinition("v1", "ServiceAccount"));
const ONE = { name: "one", namespace: "default" };

suite("eviction", (test) => {
  test(
    "fails with 429 without a retry while a PodDisruptionBudget forbids it",
    async () => {
      await using plane = await borrowControlPlane();
      const requests: string[] = [];
      const client = new ApiClient(createConnection(plane), {
        observe: ({ method, status }) => void requests.push(`${method} ${status}`),
      });
      await client.create(ServiceAccount, { metadata: { name: "default", namespace: "default" } });
      const pod = (labels: { [key: string]: string }) => ({
        metadata: { ...ONE, labels },
        spec: { containers: [{ name: "a", image: "a" }] },
      });
      const { metadata } = await client.create(Pod, pod({ a: "b" }));
      assert.is(await client.evict({ ...ONE, name: "two" }), false);
      assert.is(
        await client.evict(ONE, { uid: metadata.uid!, gracePeriodSeconds: 0 }),
        true,
        "a pod that does not run",
      );
      await client.create(Pod, pod({ a: "b" }));
      await client.mergePatch(
        Pod,
        { ...ONE, subresource: "status" },
        {
          status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
        },
      );
      const spec = { minAvailable: 1, selector: { matchLabels: { a: "b" } } };
      await client.create(DisruptionBudget, { metadata: ONE, spec });
      await client.mergePatch(
        DisruptionBudget,
        { ...ONE, subresource: "status" },
        {
          status: {
            observedGeneration: 1,
            disruptionsAllowed: 0,
            currentHealthy: 1,
            desiredHealthy: 1,
            expectedPods: 1,
          },
        },
      );
      requests.length = 0;
      const error = await client.evict(ONE).then(
        () => new Error("it was evicted"),
        (thrown: Error) => thrown,
      );
      assert.match(error.message, /^eviction of Pod "default\/one" failed: 429 TooManyRequests: Cannot evict pod/);
      assert.equal(requests, ["POST 429"]);
      await client.close();
    },
    { timeoutMs: 120_000 },
  );
});

suite("impersonating client", (test) => {
  test(
    "acts as the user, uid, groups and extra fields of its impersonation config",
    async () => {
      await using plane = await borrowControlPlane();
      const extra = { "acme.org/scopes (all)": ["view", "edit"] };
      const impersonation = { user: "jane", uid: "7", groups: ["dev", "ops"], extra };
      const client = new ApiClient(createConnection({ ...plane, impersonation }));
      const { body } = await requesterOf(client).send({
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }),
      });
      const { status } = JSON.parse(body.toString("utf8")) as { status: { userInfo: object } };
      const groups = ["dev", "ops", "system:authenticated"];
      assert.equal(status.userInfo, { username: "jane", uid: "7", groups, extra });
      await client.close();
    },
    { timeoutMs: 120_000 },
  );
});

suite("in-cluster credentials", (test) => {
  test(
    "are refreshed after a CA change or 401, and requests are never anonymous while the token file is empty",
    async () => {
      await using plane = await borrowControlPlane();
      await using folder = await createTemporaryFolder();
      const { hostname, port } = new URL(plane.url);
      const [caFile, tokenFile] = ["ca.crt", "token"].map((name) => join(folder.path, name)) as [string, string];
      await writeFile(caFile, createCertificates().ca);
      await writeFile(tokenFile, "revoked");
      const environment = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
      const client = new ApiClient(createInClusterConnection(environment, folder.path)!);
      const failureOfGet = () =>
        client.get(ServiceAccount, ONE).then(
          () => "",
          (error: unknown) => messageOf(error),
        );
      const first = failureOfGet();
      await writeFile(caFile, plane.ca);
      assert.match(await first, "401 Unauthorized");
      await writeFile(tokenFile, "");
      const failures: string[] = [];
      await waitFor("the token file is read while it is empty", async () => {
        failures.push(await failureOfGet());
        return failures.at(-1)!.includes(`${tokenFile} is empty`);
      });
      await writeFile(tokenFile, `${plane.token}\n`);
      await waitFor("the token is read again", async () => {
        failures.push(await failureOfGet());
        return failures.at(-1) === "";
      });
      assert.not(failures.some((failure) => failure.includes("anonymous")));
      await client.close();
    },
    { timeoutMs: 120_000 },
  );
});

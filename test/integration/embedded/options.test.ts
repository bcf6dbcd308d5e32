// Input that is misspelt is refused with a hint, wherever it is given.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { startApiServer, type ApiServerOptions } from "#apiserver/server.js";
import { startSimulation } from "#apiserver/simulate/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { CONFIG_MAPS, configMap } from "../../support/api/api-fixtures.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const PODS = "/api/v1/namespaces/default/pods";

suite("misspelled API server input", (test) => {
  const messageOf = async (options: object): Promise<string> => {
    const started = await startApiServer({ unref: true, ...options } as ApiServerOptions).catch(
      (error: Error) => error,
    );
    if (started instanceof Error) return started.message;
    await started.close();
    return "started";
  };

  test("rejects unknown options, controllers, and faults at startup with a suggestion", async () => {
    assert.match(
      await messageOf({ simulat: true }),
      /^unknown option "simulat": must be one of port, .*; did you mean "simulate"\?$/,
    );
    assert.match(
      await messageOf({ simulate: ["deployment"] }),
      /"deployment": must be one of .*; did you mean "deployments"\?$/,
    );
    assert.match(
      await messageOf({ simulate: { exept: ["pods"] } }),
      /simulate option "exept": .*; did you mean "except"\?$/,
    );
    assert.match(await messageOf({ faults: [{ verb: "updat" }] }), /unknown verb "updat" .*; did you mean "update"\?$/);
    assert.match(
      await messageOf({ faults: [{ namspace: "a", hang: true }] }),
      /unknown field of a fault rule "namspace": .*; did you mean "namespace"\?$/,
    );
  });

  test("rejects options of a wrong type before it listens or creates its data folder", async () => {
    await using folder = await createTemporaryFolder();
    const dataDir = join(folder.path, "data");
    await using other = await startApiServer({ tls: false, unref: true });
    const taken = Number(new URL(other.url).port);
    for (const [options, words] of [
      [{ port: "8080" }, "an integer from 0 to 65535"],
      [{ port: -1 }, "an integer from 0 to 65535"],
      [{ host: 5 }, "a non-empty string"],
      [{ tls: "no" }, "true or false"],
      [{ clientCa: "ca.crt" }, "PEM-encoded certificates"],
      [{ certificateNames: "a.example.com" }, "a list of strings"],
      [{ crds: "crds/page.yaml" }, "a list of file paths and objects"],
      [{ objects: [5] }, "a list of file paths and objects"],
      [{ simulate: "pods" }, "true, false, a list of controller names, or an object with options"],
      [{ faults: 5 }, "a list of rules"],
      [{ historyLimit: 0 }, "an integer from 1 to 9007199254740991"],
    ] as const) {
      const [[name, value]] = Object.entries(options) as [[string, unknown]];
      const message = `invalid value ${JSON.stringify(value)} of option ${name}: must be ${words}`;
      assert.is(await messageOf({ port: taken, dataDir, ...options }), message);
      assert.not.ok(existsSync(dataDir), name);
    }
    assert.match(await messageOf({ port: taken, dataDir }), /EADDRINUSE/);
    assert.is(await messageOf({ token: "a\nb" }), "invalid value of option token: must be a string without spaces");
    assert.is(await messageOf({ port: undefined, tls: undefined, users: [] }), "started");
  });

  test("rejects unknown verbs and fields of faults, in the process and with 400 over HTTP", async () => {
    await using server = await startApiServer({ tls: false });
    const verbs = ["lst", ["get", "lst"]];
    for (const verb of verbs) assert.throws(() => server.faults.add({ verb }), /unknown verb "lst"/);
    assert.throws(
      () => server.faults.cutWatches({ kinds: "Pod" } as object),
      /unknown field of a fault scope "kinds": .*; did you mean "kind"\?$/,
    );
    assert.throws(() => server.faults.holdWatches({ usr: "a" } as object), /"usr"/);
    const refused = async (path: string, body: object): Promise<unknown[]> => {
      const answer = await apiRequest<{ message: string }>(server, `POST ${path}`, { body });
      return [answer.status, /did you mean .*/.exec(answer.body.message)?.[0]];
    };
    assert.equal(await refused("/faults", { verb: "lists" }), [400, 'did you mean "list"?']);
    assert.equal(await refused("/faults", { tims: 1 }), [400, 'did you mean "times"?']);
    assert.equal(await refused("/faults/watches", { do: "silense" }), [400, 'did you mean "silence"?']);
  });

  const container = { name: "c", image: "i" };
  const pod = (annotations: object) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", annotations },
    spec: { containers: [container] },
  });

  test("rejects Pods and pod templates with an invalid simulate/ annotation with 422", async () => {
    await using server = await startApiServer({ simulate: ["pods"], tls: false });
    const refused = async (path: string, body: object): Promise<string> => {
      const answer = await apiRequest<{ message: string }>(server, `POST ${path}`, { body });
      assert.is(answer.status, 422);
      return answer.body.message;
    };
    assert.match(
      await refused(PODS, pod({ "simulate/outcome": "sucess" })),
      /metadata.annotations: .*invalid value "sucess" of annotation simulate\/outcome: must be one of run, succeed, .*; did you mean "succeed"\?$/,
    );
    assert.match(await refused(PODS, pod({ "simulate/outcom": "fail" })), /did you mean "simulate\/outcome"\?$/);
    assert.match(
      await refused(PODS, pod({ "simulate/ready-after": "5" })),
      /must be a duration such as 500ms, 2s or 1m$/,
    );
    assert.match(await refused(PODS, pod({ "simulate/exit-code": "0" })), /must be an integer from 1 to 255$/);
    const template = {
      metadata: { labels: { a: "b" }, annotations: { "simulate/outcome": "fails" } },
      spec: { restartPolicy: "Never", containers: [container] },
    };
    const selector = { matchLabels: { a: "b" } };
    const inner = { metadata: template.metadata, spec: { containers: [container] } };
    const deployment = { metadata: { name: "d" }, spec: { selector, template: inner } };
    assert.match(await refused("/apis/apps/v1/namespaces/default/deployments", deployment), /did you mean "fail"\?$/);
    const jobTemplate = { spec: { template } };
    const cronJob = { metadata: { name: "c" }, spec: { schedule: "* * * * *", jobTemplate } };
    assert.match(await refused("/apis/batch/v1/namespaces/default/cronjobs", cronJob), /did you mean "fail"\?$/);
  });

  test("leaves a Pod with an invalid simulate/ annotation unscheduled, with the reason in its condition", async () => {
    await using server = await startApiServer({ tls: false });
    await using simulation = await startSimulation(server, { only: ["pods"], unref: true });
    assert.ok(simulation);
    await apiRequestOrThrow(server, `POST ${PODS}`, { body: pod({ "simulate/outcome": "sucess" }) });
    const message = await waitFor("the Pod says why it is not scheduled", async () => {
      const { status } = await apiRequestOrThrow<ApiObject>(server, `GET ${PODS}/p`);
      const [condition] = (status?.["conditions"] ?? []) as { message: string }[];
      return condition?.message;
    });
    assert.match(message, /did you mean "succeed"\?$/);
  });
});

suite("API server host and certificateNames", (test) => {
  const namesOf = async (port: string, ca: string | undefined, servername: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host: "127.0.0.1",
        port: Number(port),
        servername,
        ...(ca === undefined ? {} : { ca }),
      });
      socket.once("error", reject);
      socket.once("secureConnect", () => {
        resolve(socket.getPeerCertificate().subjectaltname ?? "");
        socket.destroy();
      });
    });

  test("sets the URL, the kubeconfig, and the names of the certificate, and replaces a stored certificate", async () => {
    await using folder = await createTemporaryFolder();
    const options = { host: "0.0.0.0", simulate: true, dataDir: folder.path } as const;
    const certificateNames = ["api.example.internal", "10.1.2.3", "fd00::1:2"];
    {
      await using server = await startApiServer(options);
      assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    }
    // The certificate in the folder lacks the names.
    await using server = await startApiServer({ ...options, certificateNames });
    const { hostname, port } = new URL(server.url);
    assert.is(hostname, "api.example.internal");
    assert.match(server.kubeconfig, /server: https:\/\/api\.example\.internal:\d+\n/);
    assert.is(
      await namesOf(port, server.ca, hostname),
      "DNS:localhost, DNS:kubernetes.default.svc, DNS:api.example.internal, IP Address:127.0.0.1, " +
        "IP Address:0:0:0:0:0:0:0:1, IP Address:10.1.2.3, IP Address:FD00:0:0:0:0:0:1:2",
    );
  });
});

suite("deletecollection of 2000 objects", (test) => {
  test.thorough(
    "lets other requests be answered meanwhile",
    async () => {
      await using server = await startApiServer({ tls: false });
      const names = Array.from({ length: 2_000 }, (_, index) => `map-${index}`);
      for (let start = 0; start < names.length; start += 100) {
        const some = names.slice(start, start + 100);
        await Promise.all(
          some.map((name) => apiRequestOrThrow(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) })),
        );
      }
      const answers: string[] = [];
      const deleted = apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}`).then(() => answers.push("deletecollection"));
      // Once it is under way.
      await waitFor("some are gone", async () => (await apiRequest(server, `GET ${CONFIG_MAPS}/map-0`)).status === 404);
      answers.push("get");
      await deleted;
      assert.equal(answers, ["get", "deletecollection"]);
    },
    { timeoutMs: 60_000 },
  );
});

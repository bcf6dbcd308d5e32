import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import { CONFIG_MAPS, configMap, widget, widgetDefinition, WIDGETS } from "../../support/api/api-fixtures.js";
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { repositoryRoot } from "../../support/repository.js";
import { startCommand } from "../../support/machine/started-program.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { eventsUntil, openWatch } from "../../support/api/watch-client.js";

type Options = NonNullable<Parameters<typeof startApiServer>[0]>;

// Runs one server after the other on one folder.
async function inTurn(options: Options, ...runs: ((server: ApiServer) => Promise<void>)[]): Promise<void> {
  await using folder = await createTemporaryFolder();
  for (const run of runs) {
    await using server = await startApiServer({ tls: false, dataDir: folder.path, ...options });
    await run(server);
  }
}

async function filled(path: string): Promise<void> {
  await using server = await startApiServer({ tls: false, dataDir: path });
  for (let number = 0; number < 20; number++) await create(server, `c${number}`);
}

const create = async (server: ApiServer, name: string) =>
  await apiRequestOrThrow(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
const service = (name: string) => ({
  body: { metadata: { name }, spec: { type: "NodePort", ports: [{ port: 80 }] } },
});
interface Service extends ApiObject {
  spec: { clusterIP: string; ports: { nodePort: number }[] };
}
const SERVICES = "/api/v1/namespaces/default/services";
const ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts";

suite("data folder", (test) => {
  test("restores every object unchanged, and continues the resource versions", async () => {
    const before = new Map<string, string>();
    const collections = ["/api/v1/namespaces", CONFIG_MAPS, WIDGETS, "/apis/rbac.authorization.k8s.io/v1/clusterroles"];
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await inTurn(
      {},
      async (server) => {
        await apiRequestOrThrow(server, `POST ${definitions}`, { body: widgetDefinition() });
        await apiRequestOrThrow(server, `POST ${WIDGETS}`, { body: widget("w") });
        await create(server, "a");
        const apply = {
          contentType: "application/apply-patch+yaml",
          body: { ...configMap("b"), apiVersion: "v1", kind: "ConfigMap" },
        };
        await apiRequestOrThrow(server, `PATCH ${CONFIG_MAPS}/b?fieldManager=me`, apply);
        for (const path of [...collections, definitions])
          before.set(path, (await apiRequest(server, `GET ${path}`)).text);
      },
      async (server) => {
        for (const [path, text] of before) assert.equal((await apiRequest(server, `GET ${path}`)).text, text);
        const [a, next] = [JSON.parse(before.get(CONFIG_MAPS) ?? "") as ApiObject, await create(server, "c")];
        assert.ok(Number(next.metadata.resourceVersion) > Number(a.metadata.resourceVersion));
        await apiRequestOrThrow(server, `POST ${WIDGETS}`, { body: widget("x") });
      },
    );
  });

  test("lets a watch resume from a resourceVersion before the restart, deletions included", async () => {
    let from = "";
    await inTurn(
      {},
      async (server) => {
        from = (await create(server, "a")).metadata.resourceVersion;
        await create(server, "b");
        await apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}/a`);
      },
      async (server) => {
        using watch = await openWatch(server, `${CONFIG_MAPS}?watch=true&resourceVersion=${from}`);
        await create(server, "c");
        const events = await eventsUntil(watch, ({ object }) => object.metadata.name === "c");
        assert.equal(
          events.map(({ type, object }) => `${type} ${object.metadata.name}`),
          ["ADDED b", "DELETED a", "ADDED c"],
        );
      },
    );
  });

  test("returns 410 for a watch before the history limit or a compaction, also after a restart", async () => {
    let from = "";
    const after = (writes: number) => `${CONFIG_MAPS}?watch=true&resourceVersion=${Number(from) + writes}`;
    await inTurn(
      { historyLimit: 3 },
      async (server) => {
        from = (await create(server, "a")).metadata.resourceVersion;
        for (const name of ["b", "c", "d", "e"]) await create(server, name);
        await apiRequestOrThrow(server, `DELETE ${CONFIG_MAPS}/a`);
        for (const name of ["f", "g"]) await create(server, name);
      },
      async (server) => {
        using old = await openWatch(server, after(0));
        assert.is((await old.next())?.object.code, 410);
        using recent = await openWatch(server, after(5));
        assert.is((await recent.next())?.object.metadata.name, "f");
        server.faults.compact();
      },
      async (server) => {
        using watch = await openWatch(server, after(7));
        assert.is((await watch.next())?.object.code, 410);
        assert.is((await apiRequest(server, `GET ${CONFIG_MAPS}`)).body.items?.length, 6);
      },
    );
  });

  test("does not reassign cluster IPs and node ports after a restart", async () => {
    const given: (string | number)[] = [];
    const add = async (server: ApiServer, name: string): Promise<void> => {
      const body = await apiRequestOrThrow<Service>(server, `POST ${SERVICES}`, service(name));
      given.push(body.spec.clusterIP, ...body.spec.ports.map(({ nodePort }) => nodePort));
    };
    await inTurn(
      {},
      async (server) => {
        await add(server, "a");
        await add(server, "b");
      },
      (server) => add(server, "c"),
    );
    assert.is(new Set(given).size, 6);
  });

  test("keeps tokens, ServiceAccount keys and the CA", async () => {
    const tokens: string[] = [];
    let ca: string | undefined;
    await inTurn(
      { tls: true },
      async (server) => {
        ca = server.ca;
        await apiRequestOrThrow(server, `POST ${ACCOUNTS}`, { body: { metadata: { name: "operator" } } });
        const body = await apiRequestOrThrow(server, `POST ${ACCOUNTS}/operator/token`, { body: { spec: {} } });
        tokens.push(server.token, server.as("jane").token, String(body.status?.["token"]));
      },
      async (server) => {
        assert.is(server.ca, ca);
        const review = { body: { spec: {} } };
        const path = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
        const names: unknown[] = [];
        for (const token of tokens) {
          const { body } = await apiRequest<{ status?: { userInfo?: { username?: string } } }>(
            { ...server, token },
            path,
            review,
          );
          names.push(body.status?.userInfo?.username);
        }
        assert.equal(names, ["gen-operator-admin", "jane", "system:serviceaccount:default:operator"]);
      },
    );
  });

  test("continues the deletion of a CRD that waits for its objects", async () => {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    await inTurn(
      {},
      async (server) => {
        await apiRequestOrThrow(server, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
          body: widgetDefinition(),
        });
        await apiRequestOrThrow(server, `POST ${WIDGETS}`, {
          body: widget("w", {}, { finalizers: ["example.com/x"] }),
        });
        await apiRequestOrThrow(server, `DELETE ${path}`);
      },
      async (server) => {
        const patch = { contentType: "application/merge-patch+json", body: { metadata: { finalizers: null } } };
        await apiRequestOrThrow(server, `PATCH ${WIDGETS}/w`, patch);
        await apiRequest(server, "GET /api");
        assert.is((await apiRequest(server, `GET ${path}`)).status, 404);
      },
      async (server) => {
        assert.equal(
          [(await apiRequest(server, `GET ${path}`)).status, (await apiRequest(server, `GET ${WIDGETS}`)).status],
          [404, 404],
        );
      },
    );
  });

  test("updates given CRDs, and keeps other given objects", async () => {
    const [first, second] = [widgetDefinition(), widgetDefinition() as { spec: { names: object } }];
    Object.assign(second.spec.names, { shortNames: ["wdg"] });
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "operator" } };
    await using folder = await createTemporaryFolder();
    let uid = "";
    for (const [crd, shortName] of [
      [first, "wd"],
      [second, "wdg"],
    ] as const) {
      await using server = await startApiServer({ tls: false, dataDir: folder.path, crds: [crd], objects: [account] });
      const { body } = await apiRequest<{ resources: { shortNames?: string[] }[] }>(server, "GET /apis/example.com/v1");
      assert.equal(body.resources[0]?.shortNames, [shortName]);
      const { metadata } = (await apiRequest(server, `GET ${ACCOUNTS}/operator`)).body;
      assert.is(metadata.uid, uid === "" ? metadata.uid : uid);
      uid = metadata.uid;
    }
  });

  test("rejects a second server", async () => {
    await using folder = await createTemporaryFolder();
    await using _first = await startApiServer({ tls: false, dataDir: folder.path });
    await assert.rejects(
      startApiServer({ tls: false, dataDir: folder.path }),
      `data folder ${folder.path} is in use by another API server; stop that server, or use another folder`,
    );
  });

  test("is created with mode 0700", async () => {
    await using folder = await createTemporaryFolder();
    const path = join(folder.path, "data");
    await filled(path);
    assert.is((await stat(path)).mode & 0o777, 0o700);
  });

  test("that exists is restricted to mode 0700", async () => {
    await using folder = await createTemporaryFolder();
    const path = join(folder.path, "data");
    await mkdir(path);
    for (const mode of [0o755, 0o777, 0o750]) {
      await chmod(path, mode);
      await using _server = await startApiServer({ tls: false, dataDir: path });
      assert.is((await stat(path)).mode & 0o777, 0o700);
    }
  });

  test("with mode 0755 and foreign files is rejected and keeps its mode", async () => {
    await using folder = await createTemporaryFolder();
    const path = join(folder.path, "data");
    await mkdir(path, { mode: 0o755 });
    await chmod(path, 0o755);
    await writeFile(join(path, "mine"), "");
    await assert.rejects(
      startApiServer({ dataDir: path }),
      `data folder ${path} contains other files and is accessible to other users`,
    );
    assert.is((await stat(path)).mode & 0o777, 0o755);
    await chmod(path, 0o700);
    await filled(path);
  });

  test("is not created if options are invalid", async () => {
    await using folder = await createTemporaryFolder();
    const dataDir = join(folder.path, "data");
    for (const options of [{ simulate: ["deployment" as never] }, { faults: [{ verb: "lists" as never }] }])
      await assert.rejects(startApiServer({ tls: false, dataDir, ...options }), "did you mean");
    await assert.rejects(startApiServer({ tls: false, dataDir, ...{ simulated: true } }), "did you mean");
    assert.equal(await readdir(folder.path), []);
  });

  test("can be opened again after a failed start", async () => {
    await using folder = await createTemporaryFolder();
    const dataDir = join(folder.path, "data");
    await using other = await startApiServer({ tls: false });
    const later: Options[] = [
      { port: Number(new URL(other.url).port) },
      { objects: ["missing.yaml"] },
      { auditLog: join(folder.path, "missing", "audit.log") },
    ];
    for (const options of later) {
      await assert.rejects(startApiServer({ tls: false, dataDir, ...options }), /EADDRINUSE|ENOENT|in use/);
      await filled(dataDir);
      await rm(dataDir, { recursive: true });
    }
  });

  test("that cannot be created is rejected", async () => {
    await using folder = await createTemporaryFolder();
    const path = join(folder.path, "file");
    await writeFile(path, "");
    await assert.rejects(startApiServer({ dataDir: path }), `cannot create data folder ${path}`);
    const below = join(path, "data");
    await assert.rejects(startApiServer({ dataDir: below }), `cannot create data folder ${below}`);
    // Nothing can be made there, although the folder above it exists.
    const system = "/proc/gen-operator/data";
    if (process.platform === "linux")
      await assert.rejects(startApiServer({ dataDir: system }), `cannot create data folder ${system}`);
  });

  test("is created with its parent folders", async () => {
    await using folder = await createTemporaryFolder();
    const path = join(folder.path, "a/b/c");
    await using server = await startApiServer({ tls: false, dataDir: path });
    assert.is((await stat(path)).mode & 0o777, 0o700);
    await server.close();
  });

  test("is rejected if a file is damaged or missing, or an object version is lost", async () => {
    const damages: ((path: string) => Promise<void>)[] = [
      async (path) => {
        const name = (await readdir(path)).find((file) => file.endsWith(".log")) ?? "";
        const bytes = await readFile(join(path, name));
        bytes.fill(0x41, bytes.length >> 2, (bytes.length >> 2) + 100);
        await writeFile(join(path, name), bytes);
      },
      (path) => writeFile(join(path, "CURRENT"), "MANIFEST-000099\n"),
      (path) => rm(join(path, "CURRENT")),
      async (path) => {
        const level = new ClassicLevel(path);
        await level.open();
        const [key] = await level.keys({ gte: "version/", limit: 1 }).all();
        await level.del(key ?? "");
        await level.close();
      },
      async (path) => {
        const level = new ClassicLevel(path);
        await level.open();
        const [key] = await level.keys({ gte: "version/", limit: 1 }).all();
        await level.put(key ?? "", `${(await level.get(key ?? ""))?.replace("{", "[")}`);
        await level.close();
      },
    ];
    for (const damage of damages) {
      await using folder = await createTemporaryFolder();
      await filled(folder.path);
      await damage(folder.path);
      // The second time, too.
      for (let time = 0; time < 2; time++)
        await assert.rejects(
          startApiServer({ tls: false, dataDir: folder.path }),
          /(cannot open data folder \S+|data folder \S+ is damaged): .*/,
        );
    }
  });

  test.thorough("on a full disk: ends the server with 1 and an error, and keeps acknowledged writes", async () => {
    await using folder = await createTemporaryFolder();
    const bin = join(repositoryRoot, "apiserver/bin/apiserver.js");
    const args = [process.execPath, bin, "--no-tls", "--data-dir", "data", "--token", "secret"];
    // Files may have 256 KiB.
    const command = ["bash", "-c", 'ulimit -f 256; exec "$@"', "bash", ...args];
    await using program = startCommand(folder.path, command);
    await program.see(/ready \S+\n/);
    const connection = { url: /ready (\S+)\n/.exec(program.output())?.[1] ?? "", token: "secret" };
    const body = (name: string) => ({ ...configMap(name), data: { text: "x".repeat(20_000) } });
    const stored: string[] = [];
    let failure = "";
    for (let number = 0; failure === ""; number++) {
      const answer = await apiRequest(connection, `POST ${CONFIG_MAPS}`, { body: body(`c${number}`) });
      if (answer.status === 201) stored.push(`c${number}`);
      else failure = answer.text;
    }
    assert.match(
      failure,
      /cannot write to data folder data: .*File too large.*free disk space, then restart the API server/,
    );
    assert.is(await program.ended, 1);
    assert.match(program.output(), /\ncannot write to data folder data: [^\n]*File too large/);
    await using server = await startApiServer({ tls: false, dataDir: join(folder.path, "data") });
    const kept =
      (await apiRequest(server, `GET ${CONFIG_MAPS}`)).body.items?.map(({ metadata }) => metadata.name) ?? [];
    assert.ok(stored.length > 3);
    assert.equal(
      stored.filter((name) => !kept.includes(name)),
      [],
    );
  });

  test.thorough(
    "requires classic-level with an error if missing, and a server without a folder does not load it",
    async () => {
      await using folder = await createTemporaryFolder();
      const without =
        "export const resolve = (name, context, next) => next(name === 'classic-level' ? 'no-such-package' : name, context)";
      const program = `
      import { register } from "node:module";
      register("data:text/javascript,${encodeURIComponent(without)}");
      const { startApiServer } = await import(${JSON.stringify(join(repositoryRoot, "apiserver/dist/index.js"))});
      await (await startApiServer({ tls: false })).close();
      await startApiServer({ dataDir: "data" }).catch((error) => console.log(error.message));`;
      await using started = startCommand(folder.path, [process.execPath, "--input-type=module", "-e", program]);
      assert.is(await started.ended, 0);
      assert.is(started.output(), "a data folder requires the package classic-level; run npm install classic-level\n");
    },
  );
});

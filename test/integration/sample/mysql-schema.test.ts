// The sample whose dependents are a Secret and a schema on a database server: both real, the API server embedded or real.
import { createLogger, createOperator, type ApiClient, type Unstored } from "@gen-operator/runtime";
import { MySQLSchema, mySQLSchemaController, Secret } from "#mysql-schema/generated/index.js";
import { nameOf } from "#mysql-schema/mysql-schema/name-of.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../support/kinds/kind-definitions.js";
import { problemWithMariaDb, startMariaDb, type MariaDb, type MariaDbLogin } from "../../support/machine/mariadb.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startRecordedRun, type RecordedRun } from "./recorded-run.js";

const CRD = "fixtures/samples/mysql-schema/crds/mysqlschemas.example.com.yaml";
const ADMINISTRATOR = { name: "mysql-administrator", namespace: "mysql-operator" };
/** How the operator logs in at first. */
const OPERATOR = { username: "operator", password: "first" };
/** What changes something on the server, as it counts that. */
const CHANGES = ["alter_db", "alter_user", "create_db", "create_user", "drop_db", "drop_user", "grant"];

/** For the test that waits until both servers have started. */
const STARTED_FIRST = { timeoutMs: 60_000 };
/** A few attempts of the operator, which come after growing pauses. */
const ATTEMPTS = { timeoutMs: 15_000 };

const Namespace = classOf(builtinDefinition("v1", "Namespace"));

const startRun = ({ kubeconfig }: TestApiServer): Promise<RecordedRun> =>
  startRecordedRun({ controllers: [mySQLSchemaController], kubeconfig, logger: createLogger("silent") });

const decoded = ({ data = {} }: Secret) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));

suite("mysql-schema sample", (test) => {
  const problem = problemWithMariaDb();
  if (problem !== undefined) return test.skip("all tests", problem);

  const database = shared(async () => {
    const server = await startMariaDb();
    await server.query("CREATE USER ?@'%' IDENTIFIED BY ?", [OPERATOR.username, OPERATOR.password]);
    await server.query("GRANT ALL ON *.* TO ?@'%' WITH GRANT OPTION", [OPERATOR.username]);
    return server;
  });
  const cluster = shared(async () => {
    const server = await startTestApiServer({ crds: [CRD] });
    const tester = createOperator({ controllers: [], kubeconfig: server.kubeconfig, logger: createLogger("error") });
    const { client } = await tester.start();
    const { host, port } = await database();
    for (const name of [ADMINISTRATOR.namespace, "other"]) await client.create(Namespace, { metadata: { name } });
    const login = { host, port: String(port), ...OPERATOR };
    await client.create(Secret, Secret.create({ metadata: ADMINISTRATOR, stringData: login }));
    return {
      server,
      client,
      async [Symbol.asyncDispose]() {
        await tester[Symbol.asyncDispose]();
        await server[Symbol.asyncDispose]();
      },
    };
  });
  let schemas = 0;

  const newSchema = (encoding = "utf8mb4", metadata: { name?: string; namespace?: string } = {}) =>
    MySQLSchema.create({
      metadata: { name: `shop.${++schemas}`, namespace: "default", ...metadata },
      spec: { encoding },
    });
  const untilStatus = (client: ApiClient, { metadata }: Unstored<MySQLSchema>, status: RegExp) =>
    waitFor(
      `the status of ${metadata.name} is ${status}`,
      async () => {
        const live = await client.get(MySQLSchema, metadata);
        return status.test(live?.status?.status ?? "") ? live : undefined;
      },
      ATTEMPTS,
    );
  const secretOf = async (client: ApiClient, { metadata: { name, namespace } }: Unstored<MySQLSchema>) =>
    client.get(Secret, { name: `${name}-secret`, namespace });
  const loginOf = async (client: ApiClient, schema: Unstored<MySQLSchema>): Promise<MariaDbLogin> => {
    const { username = "", password = "" } = decoded((await secretOf(client, schema))!);
    return { user: username, password, database: nameOf(schema) };
  };
  const encodingOf = async ({ query }: MariaDb, schema: Unstored<MySQLSchema>): Promise<unknown> => {
    const sql = "SELECT DEFAULT_CHARACTER_SET_NAME AS encoding FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
    return (await query(sql, [nameOf(schema)]))[0]?.["encoding"];
  };
  const hasUser = async ({ query }: MariaDb, schema: Unstored<MySQLSchema>) =>
    (await query("SELECT User FROM mysql.user WHERE User = ?", [nameOf(schema)])).length > 0;
  const isAccepted = ({ query }: MariaDb, login: MariaDbLogin) =>
    query("SELECT 1", [], login).then(
      () => true,
      ({ code }: { code: string }) => code,
    );
  const changesOf = async ({ query }: MariaDb) => {
    const counts = await query("SHOW GLOBAL STATUS WHERE Variable_name IN (?)", [CHANGES.map((each) => `Com_${each}`)]);
    assert.is(counts.length, CHANGES.length);
    return Object.fromEntries(counts.map((each) => [each["Variable_name"], each["Value"]]));
  };
  /** Waits until the operator has looked at the server some more times; each time it states a mode. */
  const untilPolled = async ({ query }: MariaDb, times = 2) => {
    const count = async () => Number((await query("SHOW GLOBAL STATUS LIKE 'Com_set_option'"))[0]?.["Value"]);
    const before = await count();
    await waitFor(`${times} polls`, async () => (await count()) >= before + times);
  };
  const remove = async (client: ApiClient, schema: Unstored<MySQLSchema>) => {
    await client.delete(MySQLSchema, schema.metadata);
    await waitFor("it is gone", async () => (await client.get(MySQLSchema, schema.metadata)) === undefined);
    const secret = await secretOf(client, schema);
    if (secret !== undefined) await client.delete(Secret, secret.metadata);
  };

  test(
    "creates a schema and a user who can access only that schema",
    async () => {
      const [{ server, client }, db] = [await cluster(), await database()];
      await using _ = await startRun(server);
      const schema = newSchema("latin1");
      await client.create(MySQLSchema, schema);
      const { status } = await untilStatus(client, schema, /^CREATED$/);
      const name = nameOf(schema);
      const secretName = `${schema.metadata.name}-secret`;
      const url = `mysql://${db.host}:${db.port}/${name}`;
      assert.equal(status, { url, userName: name, secretName, status: "CREATED" });
      assert.is(await encodingOf(db, schema), "latin1");
      assert.is((await secretOf(client, schema))?.metadata.ownerReferences?.[0]?.name, schema.metadata.name);
      const login = await loginOf(client, schema);
      await db.query("CREATE TABLE orders (id INT)", [], login);
      await db.query("INSERT INTO orders VALUES (1)", [], login);
      assert.equal((await db.query("SELECT id FROM orders", [], login)).length, 1);
      // An underscore of a GRANT would stand for any character.
      const similar = name.replace("__", "_x");
      await db.query(`CREATE DATABASE \`${similar}\``);
      assert.is(await isAccepted(db, { ...login, database: similar }), "ER_DBACCESS_DENIED_ERROR");
      await db.query(`DROP DATABASE \`${similar}\``);
      await remove(client, schema);
    },
    STARTED_FIRST,
  );

  test.thorough("changes the encoding of a schema and keeps its tables", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using _ = await startRun(server);
    const schema = newSchema();
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^CREATED$/);
    const login = await loginOf(client, schema);
    await db.query("CREATE TABLE orders (id INT)", [], login);
    await client.mergePatch(MySQLSchema, schema.metadata, { spec: { encoding: "UTF8" } });
    await waitFor("the encoding is another", async () => (await encodingOf(db, schema)) === "utf8mb3");
    const before = await changesOf(db);
    await untilPolled(db);
    assert.equal(await changesOf(db), before);
    assert.equal(await db.query("SELECT id FROM orders", [], login), []);
    await remove(client, schema);
  });

  test.thorough("reports an unknown encoding, and does not retry until the spec changes", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using run = await startRun(server);
    const schema = newSchema("x'; drop database mysql; -- ");
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^ERROR: .*Unknown character set: 'x'; drop/);
    // The status is there before the reconcile that wrote it has ended.
    await waitFor("it is reconciled", () => run.events.length > 0);
    const before = run.events.length;
    await untilPolled(db);
    assert.is(run.events.length, before);
    await client.mergePatch(MySQLSchema, schema.metadata, { spec: { encoding: "utf8mb4" } });
    await untilStatus(client, schema, /^CREATED$/);
    assert.is(await encodingOf(db, schema), "utf8mb4");
    await remove(client, schema);
  });

  test.thorough("recreates a dropped schema and user with the existing password", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using _ = await startRun(server);
    const schema = newSchema();
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^CREATED$/);
    const login = await loginOf(client, schema);
    await db.query(`DROP DATABASE \`${nameOf(schema)}\``);
    await waitFor("the schema is back", async () => (await isAccepted(db, login)) === true);
    await db.query("DROP USER ?@'%'", [nameOf(schema)]);
    await waitFor("the user is back", async () => (await isAccepted(db, login)) === true);
    assert.equal(await loginOf(client, schema), login);
    await remove(client, schema);
  });

  test.thorough("uses the password of the Secret: a new one after deletion, or an edited one", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using _ = await startRun(server);
    const schema = newSchema();
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^CREATED$/);
    const first = await loginOf(client, schema);
    const secret = (await secretOf(client, schema))!;
    await client.delete(Secret, secret.metadata);
    await waitFor("there is another", async () => {
      const { uid } = (await secretOf(client, schema))?.metadata ?? {};
      return uid !== undefined && uid !== secret.metadata.uid;
    });
    const second = await loginOf(client, schema);
    assert.is.not(second.password, first.password);
    await waitFor("it is the password", async () => (await isAccepted(db, second)) === true);
    assert.is(await isAccepted(db, first), "ER_ACCESS_DENIED_ERROR");
    const password = `\\'; DROP DATABASE \`${nameOf(schema)}\`; -- "?`;
    await client.mergePatch(Secret, secret.metadata, { stringData: { password } });
    await waitFor("what was written is it", async () => (await isAccepted(db, { ...second, password })) === true);
    await remove(client, schema);
  });

  test.thorough("keeps the password if the Secret loses the label of its watch", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using run = await startRun(server);
    const schema = newSchema();
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^CREATED$/);
    const [login, secret] = [await loginOf(client, schema), (await secretOf(client, schema))!];
    const before = run.events.length;
    const labels = { "app.kubernetes.io/managed-by": null };
    await client.mergePatch(Secret, secret.metadata, { metadata: { labels } });
    await waitFor("its schema is reconciled", () => run.events.length > before);
    await untilPolled(db);
    assert.equal(await loginOf(client, schema), login);
    assert.is(await isAccepted(db, login), true);
    await remove(client, schema);
  });

  test("drops the schema and user of a deleted MySQLSchema only, not of one in another namespace", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using _ = await startRun(server);
    const schema = newSchema();
    const other = newSchema("latin1", { ...schema.metadata, namespace: "other" });
    for (const each of [schema, other]) await client.create(MySQLSchema, each);
    for (const each of [schema, other]) await untilStatus(client, each, /^CREATED$/);
    const logins = [await loginOf(client, schema), await loginOf(client, other)];
    assert.is(new Set(logins.map(({ user }) => user)).size, 2);
    assert.is.not(logins[0]?.password, logins[1]?.password);
    await remove(client, schema);
    assert.equal([await encodingOf(db, schema), await hasUser(db, schema)], [undefined, false]);
    assert.is(await isAccepted(db, logins[1]!), true);
    await remove(client, other);
    assert.equal([await encodingOf(db, other), await hasUser(db, other)], [undefined, false]);
  });

  test.thorough("keeps pending changes while the server is down, and applies them afterwards", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using run = await startRun(server);
    const [schema, leaving, coming] = [newSchema(), newSchema(), newSchema()];
    for (const each of [schema, leaving]) await client.create(MySQLSchema, each);
    for (const each of [schema, leaving]) await untilStatus(client, each, /^CREATED$/);
    const login = await loginOf(client, schema);
    await db.stop();
    await client.mergePatch(MySQLSchema, schema.metadata, { spec: { encoding: "latin1" } });
    await client.delete(MySQLSchema, leaving.metadata);
    await client.create(MySQLSchema, coming);
    const down = await untilStatus(client, schema, /^ERROR: .*ECONNREFUSED/);
    assert.is(down.status?.userName, nameOf(schema), "where the schema is does not change");
    await untilStatus(client, coming, /^ERROR: .*ECONNREFUSED/);
    assert.is(run.operator.health().status, "unhealthy");
    assert.ok((await client.get(MySQLSchema, leaving.metadata))?.metadata.deletionTimestamp, "it waits for its schema");
    await db.start();
    for (const each of [schema, coming]) await untilStatus(client, each, /^CREATED$/);
    assert.is(await encodingOf(db, schema), "latin1");
    assert.equal(await loginOf(client, schema), login);
    await waitFor("it is gone", async () => (await client.get(MySQLSchema, leaving.metadata)) === undefined);
    assert.equal([await encodingOf(db, leaving), await hasUser(db, leaving)], [undefined, false]);
    await waitFor("all is well", () => run.operator.health().status === "healthy");
    for (const each of [schema, coming]) await remove(client, each);
  });

  test.thorough("uses a changed administrator password without a restart", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    await using _ = await startRun(server);
    await db.query("ALTER USER ?@'%' IDENTIFIED BY 'second'", [OPERATOR.username]);
    const schema = newSchema();
    await client.create(MySQLSchema, schema);
    await untilStatus(client, schema, /^ERROR: .*Access denied for user 'operator'/);
    await client.mergePatch(Secret, ADMINISTRATOR, { stringData: { password: "second" } });
    await untilStatus(client, schema, /^CREATED$/);
    await remove(client, schema);
  });

  test.thorough("changes nothing after a restart", async () => {
    const [{ server, client }, db] = [await cluster(), await database()];
    const schema = newSchema();
    {
      await using _ = await startRun(server);
      await client.create(MySQLSchema, schema);
      await untilStatus(client, schema, /^CREATED$/);
      await untilPolled(db);
    }
    const [login, before] = [await loginOf(client, schema), await changesOf(db)];
    await using second = await startRun(server);
    await waitFor("it is reconciled again", () => second.events.length > 0);
    await untilPolled(db);
    assert.equal(second.requests, []);
    assert.equal(await changesOf(db), before);
    assert.equal(await loginOf(client, schema), login);
    assert.equal(
      second.events.flatMap(({ error }) => error ?? []),
      [],
    );
    await remove(client, schema);
  });
});

// The objects are those that the version before left, as record.ts wrote them down: with its managed fields, labels, annotations and finalizers. Its
// runtime stands beside them in one file.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import * as present from "#runtime/index.js";
import type { KubernetesObject, ObjectMeta, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type Connection } from "../../../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../../../support/api/api-server.js";
import { repositoryRoot } from "../../../../support/repository.js";
import { assert, suite } from "../../../../support/suite.js";
import { pageCrd, type Page } from "../../page.js";
import { LEFT_KINDS, listAll, NAMESPACE, optionsOf, OTHER_NAMESPACE, type Accounts } from "./scenario.js";

interface Left {
  readonly accounts: readonly { id: string; value: string }[];
  readonly objects: readonly (KubernetesObject & { readonly spec?: object; readonly status?: object })[];
}

type Runtime = Pick<typeof present, "createOperator">;

const folder = join(repositoryRoot, "fixtures/version-before");
const earlier = (await import(pathToFileURL(join(folder, "runtime.mjs")).href)) as Runtime;
const left = JSON.parse(readFileSync(join(folder, "objects.json"), "utf8")) as Left;
// A real API server on a busy machine takes longer between two writes.
const QUIET_MS = isRealApiServer ? 4_000 : 1_000;

function pathOf({ group, version, plural }: ResourceDefinition, { namespace }: ObjectMeta): string {
  return `${group === "" ? `/api/${version}` : `/apis/${group}/${version}`}/namespaces/${namespace}/${plural}`;
}

/** Creates the objects again, with the uids of this server. */
async function restore(admin: Connection): Promise<void> {
  for (const name of [NAMESPACE, OTHER_NAMESPACE])
    await apiRequestOrThrow(admin, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  const uids = new Map<string, string>();
  for (const recorded of left.objects) {
    let text = JSON.stringify(recorded);
    for (const [before, now] of uids) text = text.replaceAll(before, now);
    const { metadata, status, ...rest } = JSON.parse(text) as Left["objects"][number];
    const definition = LEFT_KINDS.find(({ kind }) => kind === rest.kind)!;
    const { uid: _1, resourceVersion: _2, creationTimestamp: _3, generation: _4, managedFields, ...kept } = metadata;
    const { clusterIP: _5, clusterIPs: _6, ...spec } = (rest.spec ?? {}) as { clusterIP?: string; clusterIPs?: object };
    const body = { ...rest, ...(rest.spec !== undefined && { spec }), metadata: kept };
    const path = pathOf(definition, metadata);
    const { metadata: created } = await apiRequestOrThrow<KubernetesObject>(admin, `POST ${path}`, { body });
    uids.set(recorded.metadata.uid!, created.uid!);
    const patch = async (at: string, contentType: string, change: object) =>
      apiRequestOrThrow(admin, `PATCH ${path}/${metadata.name}${at}`, { body: change, contentType });
    if (definition.isCustom) await patch("/status", "application/merge-patch+json", { status });
    const entries = { op: "replace", path: "/metadata/managedFields", value: managedFields };
    await patch("", "application/json-patch+json", [entries]);
  }
}

/** Runs the operator on a version of the runtime until it writes nothing more and is done; returns what it wrote. */
async function run(
  admin: Connection,
  accounts: Accounts,
  { createOperator }: Runtime = present,
  isDone = () => Promise.resolve(true),
  reconciler?: object,
): Promise<readonly string[]> {
  const record = { requests: [] as string[], problems: [] as string[] };
  await using operator = createOperator(optionsOf(admin, accounts, record, reconciler) as never);
  await operator.start();
  let last = { writes: -1, at: 0 };
  await waitFor("it is quiet", async () => {
    const { length } = record.requests;
    if (length !== last.writes) last = { writes: length, at: performance.now() };
    return performance.now() - last.at > QUIET_MS && (await isDone());
  });
  // A machine that gives the process no time is no fault of the operator.
  const problems = record.problems.filter(
    (line) => !/the event loop was blocked .* no reconcile was in progress/.test(line),
  );
  assert.equal(problems, []);
  return record.requests.sort();
}

const PAGES = `/apis/example.com/v1/namespaces/${NAMESPACE}/pages`;

/** Edits the first page. */
async function edit(admin: Connection, text: string): Promise<void> {
  const patch = { body: { spec: { text } }, contentType: "application/merge-patch+json" };
  await apiRequestOrThrow(admin, `PATCH ${PAGES}/one?fieldManager=user`, patch);
}

const of = (...lines: readonly string[]) =>
  ["one", "two"].flatMap((page) => lines.map((line) => line.replaceAll("PAGE", page))).sort();
const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const ELSEWHERE = `/api/v1/namespaces/${OTHER_NAMESPACE}/configmaps`;
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;

// The version before links without a uid.
const relinked = [`${CONFIG_MAPS}/PAGE-ordered`, `${CONFIG_MAPS}/PAGE-orphan`, `${ELSEWHERE}/PAGE-elsewhere`].map(
  (path) => `PATCH ${path} 200`,
);

const accountsOf = ({ accounts }: Left): Accounts => new Map(accounts.map((each) => [each.id, { ...each }]));

suite("upgrade from the previous version", (test) => {
  test("writes objects once for the uid of links, the record of a PUT and the proof of an id", async () => {
    await using admin = await startTestApiServer({ crds: [pageCrd] });
    await restore(admin);
    const accounts = accountsOf(left);
    const before = await listAll(admin);
    const expected = [
      // The key of the proofs, and the mark that all ids have one.
      ...[`POST ${SECRETS} 201`, `PATCH ${SECRETS}/gen-operator-proof-key 200`],
      ...of(
        ...[`PUT ${SECRETS}/PAGE-put 200`, `PATCH ${CONFIG_MAPS}/PAGE-ordered 200`],
        ...[`PATCH ${CONFIG_MAPS}/PAGE-orphan 200`, `PATCH ${CONFIG_MAPS}/PAGE-account-HASH-state 200`],
        `PATCH ${ELSEWHERE}/PAGE-elsewhere 200`,
      ),
    ].sort();
    const written = await run(admin, accounts);
    assert.equal(written.map((line) => line.replace(/-[\da-f]{8}-state/, "-HASH-state")).sort(), expected);
    assert.equal([...accounts.values()], left.accounts);
    const versions = (all: readonly KubernetesObject[]) =>
      new Map(all.map(({ kind, metadata: { name, resourceVersion } }) => [`${kind} ${name}`, resourceVersion]));
    const [old, now] = [versions(before), versions(await listAll(admin))];
    const changed = [...old].flatMap(([name, version]) => (now.get(name) === version ? [] : [name]));
    assert.is(changed.length, expected.length - 2);
    assert.equal(await run(admin, accounts), []);
  });

  test(
    "lets the previous version reconcile after a rollback, and the present one again afterwards",
    async () => {
      await using admin = await startTestApiServer({ crds: [pageCrd] });
      await restore(admin);
      const accounts = accountsOf(left);
      await run(admin, accounts);
      assert.equal(await run(admin, accounts, earlier), of(...relinked));

      await edit(admin, "edited");
      const edited = (await run(admin, accounts, earlier)).filter((line) => !line.includes("/pages/"));
      const items = ["config", "a", "b"].map((name) => `PATCH ${CONFIG_MAPS}/one-${name} 200`);
      const all = [...items, `PUT ${SECRETS}/one-put 200`, ...relinked.map((line) => line.replace("PAGE", "one"))];
      assert.equal(edited, all.sort());
      assert.equal([...accounts.values()].map(({ value }) => value).sort(), ["edited", "text of two"]);

      await apiRequestOrThrow(admin, `DELETE ${PAGES}/two`);
      // The finalizer stays until the absence of the account is confirmed, and nothing is written meanwhile.
      const isGone = async () =>
        (await listAll(admin)).every(({ kind, metadata }) => kind !== "Page" || metadata.name !== "two");
      await run(admin, accounts, earlier, isGone);
      assert.is(accounts.size, 1);
      const rest = (await listAll(admin)).filter(({ metadata }) => metadata.finalizers !== undefined);
      assert.equal(
        rest.map(({ metadata: { name } }) => name),
        ["one"],
      );

      assert.equal(await run(admin, accounts), relinked.map((line) => line.replace("PAGE", "one")).sort());
      assert.equal(
        [...accounts.values()].map(({ value }) => value),
        ["edited"],
      );
    },
    { timeoutMs: 180_000 },
  );

  test("lets the previous version write each linked object once after a rollback", async () => {
    await using admin = await startTestApiServer({ crds: [pageCrd] });
    for (const name of [NAMESPACE, OTHER_NAMESPACE])
      await apiRequestOrThrow(admin, "POST /api/v1/namespaces", { body: { metadata: { name } } });
    for (const { apiVersion, kind, metadata, spec } of left.objects.filter((each) => each.kind === "Page")) {
      const { name, namespace } = metadata;
      const body = { apiVersion, kind, metadata: { name, namespace }, spec };
      await apiRequestOrThrow(admin, `POST ${pathOf(LEFT_KINDS[0]!, metadata)}?fieldManager=user`, { body });
    }
    const accounts: Accounts = new Map();
    await run(admin, accounts);
    assert.equal(await run(admin, accounts, earlier), of(...relinked));
    assert.is(accounts.size, 2);
    assert.equal(await run(admin, accounts, earlier), []);
  });

  test(
    "keeps the status of the reconciler and the conditions in both directions, without repeated writes",
    async () => {
      await using admin = await startTestApiServer({ crds: [pageCrd] });
      await restore(admin);
      const accounts = accountsOf(left);
      const reconciler = { reconcile: ({ primary }: { primary: Page }) => ({ status: { text: primary.spec.text } }) };
      const statuses = (lines: readonly string[]) => lines.filter((line) => line.includes("/status"));
      const runStatus = async (runtime: Runtime) => {
        const written = statuses(await run(admin, accounts, runtime, undefined, reconciler));
        assert.equal(statuses(await run(admin, accounts, runtime, undefined, reconciler)), []);
        return written.length;
      };
      const check = async (text: string) => {
        const page = (await listAll(admin)).find(
          ({ kind, metadata }) => kind === "Page" && metadata.name === "one",
        ) as Page;
        assert.is(page.status?.text, text);
        assert.is(page.status?.conditions?.[0]?.observedGeneration, page.metadata.generation);
        assert.ok(page.status?.conditions?.some(({ type }) => type === "Ready"));
      };
      // Two pages get a status.
      assert.is(await runStatus(earlier), 2);
      assert.is(await runStatus(present), 0);
      await edit(admin, "by the present one");
      // The status and the conditions at once, and what the version before owns of the conditions.
      assert.is(await runStatus(present), 2);
      await check("by the present one");
      await edit(admin, "again");
      assert.is(await runStatus(present), 1);
      assert.is(await runStatus(earlier), 2, "it takes the conditions under a name of their own again");
      await check("again");
      await edit(admin, "by the version before");
      assert.is(await runStatus(earlier), 2);
      await check("by the version before");
      assert.is(await runStatus(present), 0);
      await edit(admin, "forward");
      assert.is(await runStatus(present), 2);
      await check("forward");
    },
    { timeoutMs: 180_000 },
  );
});

// Every sample as a service account of a real API server that may do what `generate` computed, and nothing else.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { KubernetesObject } from "@gen-operator/runtime";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { untestedRows } from "../../support/tables/named-tests.js";
import { startSimulation } from "#apiserver/simulate/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import {
  describeRight,
  needs,
  readAuditLog,
  rightsIn,
  type AuditedRequest,
  type Right,
} from "../../support/api/audit-log.js";
import { builtinDefinition, classOf } from "../../support/kinds/kind-definitions.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { deploySample, problemWithPods, type DeployedReplica, type DeployedSample } from "./deployed-sample.js";
import { SAMPLE_LIVES, untilGone, type SampleLife } from "./sample-lives.js";

interface Event extends KubernetesObject {
  readonly reason: string;
  readonly regarding: { readonly kind: string; readonly name: string };
  readonly series?: { readonly count: number };
}

const EVENT = classOf<Event>(builtinDefinition("events.k8s.io/v1", "Event"));
const OWNER_TITLE = "allow owner references with blockOwnerDeletion under OwnerReferencesPermissionEnforcement";
const PAUSED = "gen-operator.dev/paused";

suite("RBAC of the samples", (test) => {
  const cluster = shared(async () => {
    const plane = await startControlPlane({ controllers: true, audited: true });
    const simulation = await startSimulation(plane, { except: ["garbage-collection", "namespaces"] });
    const { url, token, ca } = plane;
    const client = new ApiClient(createConnection({ url, token, ca }));
    return {
      ...{ plane, client },
      async [Symbol.asyncDispose]() {
        await client.close();
        await simulation.close();
        await plane.close();
      },
    };
  });

  for (const life of SAMPLE_LIVES) {
    const title = `grants ${life.name} exactly the permissions that it uses`;
    const problem = life.problem ?? problemWithPods();
    if (problem !== undefined) {
      test.skip(title, problem);
      continue;
    }
    test(
      title,
      async () => {
        const { plane, client } = await cluster();
        const { auditLog = "" } = plane;
        const sample = await deploySample(plane, life.name);
        await live(life, client, sample);
        const requests = await readAuditLog(auditLog, sample.user);
        const refused = requests.filter(({ isForbidden }) => isForbidden);
        assert.equal(
          refused.map(({ verb, path }) => `${verb} ${path}`),
          [],
        );
        assert.equal(unusedRights(life.name, requests), []);
      },
      { timeoutMs: 300_000 },
    );
  }
});

suite("RBAC of a sample", (test) => {
  test(
    OWNER_TITLE,
    async () => {
      await using plane = await startControlPlane({ admissionPlugins: ["OwnerReferencesPermissionEnforcement"] });
      const { connection } = await deploySample(plane, "webpage");
      const page = await apiRequestOrThrow<KubernetesObject>(
        plane,
        "POST /apis/example.com/v1/namespaces/default/webpages",
        {
          body: {
            apiVersion: "example.com/v1",
            kind: "WebPage",
            metadata: { name: "page" },
            spec: { html: "<h1>hello</h1>" },
          },
        },
      );
      const { apiVersion, kind, metadata } = page;
      const owner = {
        apiVersion,
        kind,
        name: metadata.name,
        uid: metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      };
      const create = async () => {
        const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "page", ownerReferences: [owner] } };
        const path = "POST /api/v1/namespaces/default/configmaps?dryRun=All";
        return apiRequest(connection, path, { body: object });
      };
      // The plugin learns of new kinds every 30 s.
      await waitFor("the rules suffice", async () => (await create()).status === 201, { timeoutMs: 60_000 });
      const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/webpage";
      const { rules } = await apiRequestOrThrow<{ rules: readonly { resources: readonly string[] }[] }>(
        plane,
        `GET ${role}`,
      );
      const others = rules.filter(({ resources }) => !resources.includes("webpages/finalizers"));
      assert.is(others.length, rules.length - 1);
      const contentType = "application/merge-patch+json";
      await apiRequestOrThrow(plane, `PATCH ${role}`, { body: { rules: others }, contentType });
      await waitFor("the rule is missed", async () => {
        const { status, text } = await create();
        return status === 403 && text.includes("finalizers");
      });
    },
    { timeoutMs: 120_000 },
  );

  test("covers rules that only failures use in tests that exist", () => {
    const rows = EXCEPTIONS.filter(({ file }) => file !== "").map(({ file, title }) => ({
      id: title,
      tests: [{ file, title }],
    }));
    assert.equal(untestedRows(rows), []);
  });
});

function unusedRights(name: string, requests: readonly AuditedRequest[]): string[] {
  const rules = readFileSync(join(repositoryRoot, `fixtures/samples/${name}/deploy/generated/rbac.yaml`), "utf8");
  const unused = rightsIn(rules).filter((right) => !requests.some((request) => needs(request, right)));
  return unused.filter((right) => !isForFailures(right)).map(describeRight);
}

/** A right that a life without failures does not use, and the test that does. */
interface Exception {
  readonly verb: string;
  readonly isMeant: (right: Right) => boolean;
  readonly file: string;
  readonly title: string;
}

const isPrimary = ({ group, resource }: Right) => group === "example.com" && !resource.includes("/");
const EXCEPTIONS: readonly Exception[] = [
  // An API server that does not stream lists.
  {
    verb: "list",
    isMeant: () => true,
    file: "integration/runtime/watches/scripted-watch.test",
    title: "lists in pages if a WatchList is answered with 400",
  },
  // A name that somebody else has, and whatever else meets a conflict.
  {
    verb: "get",
    isMeant: ({ group }) => group !== "coordination.k8s.io",
    file: "integration/runtime/reconciles/errors.test",
    title: "of optimistic locking (409) are retried with the latest object",
  },
  // What a dependent had under a former name.
  {
    verb: "delete",
    isMeant: () => true,
    file: "integration/runtime/dependents/bulk-dependents.test",
    title: "is created under a new name, and the object with the old name is deleted",
  },
  // The finalizer of this or an earlier version.
  {
    verb: "patch",
    isMeant: isPrimary,
    file: "integration/runtime/life-cycle/operator.test",
    title: "is added before dependents are created and removed after they are deleted",
  },
  // What the admission plugin asks for.
  {
    verb: "update",
    isMeant: ({ resource }) => resource.endsWith("/finalizers"),
    file: "",
    title: OWNER_TITLE,
  },
];

function isForFailures(right: Right): boolean {
  return EXCEPTIONS.some(({ verb, isMeant }) => verb === right.verb && isMeant(right));
}

/** Lets a sample do all its work, with two replicas, one after the other. */
async function live(life: SampleLife, client: ApiClient, sample: DeployedSample): Promise<void> {
  await using surroundings = await life.surround?.(client);
  await using first = await sample.start(surroundings?.environment);
  await first.untilLogged("acquired Lease");
  await using second = await sample.start(surroundings?.environment);
  try {
    await second.untilLogged("standing by");
    await life.begin(client);
    for (const primary of life.primaries) await pauseTwice(client, primary, first);
    assert.is(await first.terminate(), 0);
    await second.untilLogged("acquired Lease");
    await life.change(client);
    for (const { kind, name } of life.primaries) await client.delete(kind, { name, namespace: "default" });
    for (const each of life.primaries) await untilGone(client, each);
    assert.is(await second.terminate(), 0);
  } catch (error) {
    throw new Error(`${String(error)}\n${[...first.log, ...second.log].slice(-30).join("\n")}`, { cause: error });
  }
}

// The second time the Event is a series.
async function pauseTwice(
  client: ApiClient,
  primary: SampleLife["primaries"][number],
  { log }: DeployedReplica,
): Promise<void> {
  const { kind, name } = primary;
  const resumptions = () => log.filter((line) => line.includes('"resumed: ')).length;
  const before = resumptions();
  const set = (value: string | null) =>
    client.mergePatch(kind, { name, namespace: "default" }, { metadata: { annotations: { [PAUSED]: value } } });
  const countIs = (count: number) =>
    waitFor(`${name} was paused ${count} times`, async () => (await pausesOf(client, primary)) >= count, {
      timeoutMs: 60_000,
    });
  for (const count of [1, 2]) {
    await set("true");
    await countIs(count);
    await set(null);
    // It might not see two changes that come at once.
    await waitFor(`${name} was resumed`, () => resumptions() === before + count, { timeoutMs: 60_000 });
  }
}

// Two samples have a primary of the same name in this namespace.
async function pausesOf(client: ApiClient, { kind, name }: SampleLife["primaries"][number]): Promise<number> {
  const events = await client.list<Event>(EVENT, { namespace: "default" });
  const event = events.find(
    ({ reason, regarding }) =>
      reason === "Paused" && regarding.name === name && regarding.kind === kind.definition.kind,
  );
  return event === undefined ? 0 : (event.series?.count ?? 1);
}

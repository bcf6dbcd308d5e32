import { type Clock, systemClock } from "#runtime/base/wait.js";
import { ApiError } from "#runtime/base/errors.js";
import type { DecodedResource, KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ApiClient, WriteRequest } from "#runtime/client/api-client.js";
import { defineResource } from "#runtime/api/define-resource.js";
import { KindOperations } from "#runtime/apply/resource-operations.js";
import { LAST_STATED } from "#runtime/apply/update.js";
import { Sender } from "#runtime/apply/sender.js";
import { Writer } from "#runtime/apply/writer.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { createView } from "../../../support/runtime/resource-view.js";
import { assert, suite } from "../../../support/suite.js";

const configMap = builtinDefinition("v1", "ConfigMap");
interface Page extends KubernetesObject {
  status?: { at?: string };
}

const page = defineResource({
  group: "example.com",
  version: "v1",
  kind: "Page",
  plural: "pages",
  scope: "Namespaced",
  hasStatusSubresource: true,
  isCustom: true,
  schema: { type: "object", properties: { status: { type: "object", properties: { at: { type: "string" } } } } },
});

const ref = { name: "a", namespace: "x" };

/** A client whose server stores what `store` makes of a request. */
function createWriter(
  store: (desired: object, request: WriteRequest) => DecodedResource,
  { serverSideApply = true, clock = systemClock }: { serverSideApply?: boolean; clock?: Clock } = {},
) {
  const applied: object[] = [];
  const client = {
    readPath: async () => undefined,
    write: async (_: unknown, request: WriteRequest) => {
      applied.push(request.body);
      const answer = store(request.body, request);
      const known = request.findKnown?.(answer.object.metadata.resourceVersion ?? "");
      return { ...(known ?? answer), wasCreated: false };
    },
  } as unknown as ApiClient;
  const { view, cache: watched } = createView();
  const sender = new Sender({ client, fieldManager: "us", clock });
  return { applied, sender, writer: new Writer(sender, { serverSideApply }), cache: view, watched };
}

const stored = (
  resourceVersion: string,
  content: object,
  { annotations, ...fields }: Pick<DecodedResource, "owned"> & Pick<KubernetesObject["metadata"], "annotations">,
): DecodedResource => ({
  object: {
    apiVersion: "v1",
    kind: "X",
    metadata: { ...ref, uid: "u", resourceVersion, ...(annotations && { annotations }) },
    ...content,
  } as KubernetesObject,
  ...fields,
});

suite("Writer", (test) => {
  test("applies an object with a server-side mutation once, until the live or desired object changes", async () => {
    const fields = { fieldManager: "us", subresource: "", apiVersion: "v1", fieldsV1: '{"f:data":{"f:text":{}}}' };
    const owned = [fields];
    const { writer, cache, applied } = createWriter(() => stored("2", { data: { text: "NORMAL" } }, { owned }));
    const apply = (text: string, live: DecodedResource) => {
      const desired = { metadata: ref, data: { text } };
      return writer.apply({ definition: configMap, cache }, desired, { live });
    };
    const known = () => cache.get("x/a")!;
    assert.is((await apply("normal", stored("1", { data: { text: "OLD" } }, { owned }))).kind, "updated");
    assert.is((await apply("normal", known())).kind, "unchanged");
    const touched = stored("3", { data: { text: "NORMAL" } }, { owned });
    assert.is((await apply("normal", touched)).kind, "unchanged", "also when others changed what is not ours");
    assert.is(applied.length, 1);
    assert.is((await apply("other", known())).kind, "unchanged", "the server stored nothing new");
    assert.is((await apply("other", known())).kind, "unchanged");
    const foreign = stored("3", { data: { text: "theirs" } }, { owned });
    assert.is((await apply("other", foreign)).kind, "updated");
  });

  test("applies a status with a server-side mutation once", async () => {
    const fields = { apiVersion: "example.com/v1", fieldsV1: '{"f:status":{"f:at":{}}}' };
    const owned = [{ fieldManager: "us", subresource: "status", ...fields }];
    const answer = stored("2", { status: { at: "2026-01-01T00:00:00Z" } }, { owned });
    const { sender, cache, watched, applied } = createWriter(() => answer);
    const operations = new KindOperations<Page>({ definition: page, cache }, { sender });
    const apply = (at: string, live = answer) => {
      watched.observe(live);
      return operations.applyStatus({ metadata: ref, status: { at } });
    };
    const before = stored("1", { status: { at: "2025-01-01T00:00:00Z" } }, { owned });
    assert.is((await apply("2026-01-01T00:00:00.0Z", before)).kind, "updated");
    assert.is((await apply("2026-01-01T00:00:00.0Z")).kind, "unchanged");
    assert.is((await apply("2026-01-01T00:00:00Z")).kind, "unchanged", "this is what it stores");
    assert.is(applied.length, 1);
  });

  const ways = ["server-side apply", "PUT", "a status"] as const;
  for (const way of ways)
    test(`warns once about a server-side mutation and reapplies after 10 minutes: ${way}`, async () => {
      const [part, subresource] = way === "a status" ? (["status", "status"] as const) : (["data", ""] as const);
      const fieldsV1 = JSON.stringify({ [`f:${part}`]: { "f:at": {} } });
      const owned = [
        { fieldManager: "us", subresource, apiVersion: part === "data" ? "v1" : "example.com/v1", fieldsV1 },
      ];
      let [version, policy, now] = [1, "policy" as string | undefined, 0];
      let live = stored("1", { [part]: { at: "old" } }, { owned });
      const { applied, sender, writer, cache, watched } = createWriter(
        (desired) => {
          const at = policy ?? (desired as Record<string, { at: string }>)[part]!.at;
          const { annotations } = (desired as KubernetesObject).metadata;
          const hasChanged = (live.object as unknown as Record<string, { at: string }>)[part]!.at !== at;
          if (hasChanged || live.object.metadata.annotations?.[LAST_STATED] !== annotations?.[LAST_STATED])
            live = stored(`${++version}`, { [part]: { at } }, { owned, annotations });
          return live;
        },
        { serverSideApply: way !== "PUT", clock: { ...systemClock, now: () => now } },
      );
      const warnings: string[] = [];
      const warn = (_: object, message: string) => void warnings.push(message);
      const cause = { logger: { debug() {}, info() {}, warn, error() {} } };
      const statuses = new KindOperations<Page>({ definition: page, cache }, { sender, cause });
      const sendsOf = async (at: string) => {
        watched.observe(live);
        const before = applied.length;
        if (part === "status") await statuses.applyStatus({ metadata: ref, status: { at } });
        else
          await writer.apply({ definition: configMap, cache }, { metadata: ref, data: { at } } as never, {
            live,
            cause,
          });
        return applied.length - before;
      };
      const foreign = (at: string) => {
        const { annotations } = live.object.metadata;
        live = stored(`${++version}`, { [part]: { at } }, { owned, annotations });
      };
      assert.is(await sendsOf("wanted"), 1);
      assert.is(warnings.length, 1, "with the write");
      assert.equal([await sendsOf("wanted"), await sendsOf("wanted")], [0, 0]);
      const what = part === "status" ? 'the status of Page "x/a"' : 'ConfigMap "x/a"';
      assert.ok(warnings[0]!.startsWith(`${what} differs from the applied object (${part}.at): `), warnings[0]);
      now = 599_999;
      assert.is(await sendsOf("wanted"), 0);
      now = 600_000;
      assert.equal([await sendsOf("wanted"), await sendsOf("wanted")], [1, 0], "it is stored as before");
      now = 1_199_999;
      assert.is(await sendsOf("wanted"), 0);
      policy = undefined;
      now = 1_200_000;
      assert.equal([await sendsOf("wanted"), await sendsOf("wanted")], [1, 0]);
      foreign("policy");
      assert.is(await sendsOf("wanted"), 1, "what was learned is forgotten when it is stored as desired");
      assert.is(warnings.length, 1, warnings.join("\n"));
    });

  test("includes the uid in a status apply of a kind without the status subresource", async () => {
    const requests: WriteRequest[] = [];
    const { sender, cache, applied } = createWriter((_, request) => {
      requests.push(request);
      return stored("2", {}, {});
    });
    const operations = new KindOperations<Page>(
      { definition: { ...page, hasStatusSubresource: false }, cache },
      { sender },
    );
    await operations.applyStatus({ metadata: { ...ref, uid: "u" }, status: { at: "x" } });
    // An apply of the object itself would create it again, which the uid prevents.
    assert.equal(applied, [{ metadata: { ...ref, uid: "u" }, status: { at: "x" } }]);
    assert.equal(
      requests.map(({ verb, subresource }) => [verb, subresource]),
      [["apply", undefined]],
    );
  });

  test("emits foreign changes after a failed write", async () => {
    const { writer, cache, watched } = createWriter(() => {
      watched.observe(stored("5", { data: { text: "theirs" } }, {}));
      throw new ApiError(500, { message: "no" });
    });
    const notes: string[] = [];
    cache.onChange(({ kind }) => notes.push(kind));
    const live = stored("1", {}, {});
    const desired = { metadata: ref, data: { text: "ours" } };
    await writer.apply({ definition: configMap, cache }, desired, { live }).catch(() => {});
    assert.equal(notes, ["added"]);
  });
});

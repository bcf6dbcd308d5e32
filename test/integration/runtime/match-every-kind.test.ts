// The matcher against what an API server makes of random objects of every built-in kind that can be applied. Runs on a real kube-apiserver,
// too, with TEST_API_SERVER=real. MATCH_SEED gives other objects, MATCH_STEPS more of them.
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "#apiserver/json.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ResourceDefinition } from "#runtime/base/resource-definition.js";
import { decodeResource } from "#runtime/cluster/decode-resource.js";
import { objectPath } from "#runtime/cluster/resource-path.js";
import { match, type Verdict } from "#runtime/write/match.js";
import { parseOwnedFields } from "#runtime/write/owned-fields.js";
import { schemaOf } from "#runtime/write/schema-node.js";
import { withEncodedData } from "#runtime/write/secret-data.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../support/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api-server.js";
import { ObjectGrower, randomOf, type Random } from "../../support/grown-objects.js";
import { builtinDefinition } from "../../support/kind-definitions.js";
import { minimalObjects, type MinimalObject } from "../../support/minimal-objects.js";
import { assert, shared, suite } from "../../support/suite.js";

const FIELD_MANAGER = "laws";
const SEED = Number(process.env["MATCH_SEED"] ?? 1);
const STEPS = Number(process.env["MATCH_STEPS"] ?? 60);
/** How many changes the server has to take, so that the laws are known to have been tried. */
const MIN_ACCEPTED = 3;

const server = shared(() => startTestApiServer());

/** A kind on a server, in a namespace of its own. */
class Kind {
  readonly definition: ResourceDefinition;
  readonly #connection: Connection;
  readonly #namespace: string;
  readonly #kind: MinimalObject;

  constructor(connection: Connection, kind: MinimalObject) {
    this.#connection = connection;
    this.#kind = kind;
    this.definition = builtinDefinition(kind.apiVersion, kind.kind);
    this.#namespace = `laws-${kind.apiVersion}-${kind.kind}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  }

  async prepare(): Promise<void> {
    const namespace = { metadata: { name: this.#namespace } };
    await apiRequestOrThrow(this.#connection, "POST /api/v1/namespaces", { body: namespace });
  }

  /** What is applied under a name. */
  named(content: JsonObject, name: string): JsonObject {
    const { apiVersion, kind } = this.#kind;
    const isNamespaced = this.definition.scope === "Namespaced";
    const metadata = { ...(content["metadata"] as JsonObject | undefined), name: this.#kind.name ?? name };
    const ref = isNamespaced ? { ...metadata, namespace: this.#namespace } : metadata;
    return withEncodedData(this.definition, { ...structuredClone(content), apiVersion, kind, metadata: ref });
  }

  /** What the server answers, as text; undefined if it does not take the object. */
  async apply(desired: JsonObject, { isDryRun }: { isDryRun: boolean }): Promise<{ text?: string; refusal: string }> {
    const { metadata } = desired as unknown as KubernetesObject;
    const path = objectPath(this.definition, metadata);
    const query = `?fieldManager=${FIELD_MANAGER}&force=true${isDryRun ? "&dryRun=All" : ""}`;
    const { status, text } = await apiRequest(this.#connection, `PATCH ${path}${query}`, {
      body: desired,
      contentType: "application/apply-patch+yaml",
    });
    return status < 300 ? { text, refusal: "" } : { refusal: `${status} ${text}` };
  }

  verdictOf(desired: JsonObject, answer: string): Verdict {
    const { object, owned: [owned] = [] } = decodeResource(Buffer.from(answer), { fieldManagers: [FIELD_MANAGER] });
    const options = { owned: parseOwnedFields(owned?.fieldsV1 ?? "{}"), schema: schemaOf(this.definition) };
    return match(structuredClone(desired) as never, object as never, options);
  }
}

function contentOf(answer: string): unknown {
  const object = JSON.parse(answer) as { metadata: { managedFields?: { time?: string }[] } };
  for (const entry of object.metadata.managedFields ?? []) delete entry.time;
  return object;
}

/** Grows an object as far as the server follows; every state that it takes has to match. */
async function grown(kind: Kind, minimal: MinimalObject, random: Random) {
  const grower = new ObjectGrower(minimal, random);
  const paths = new Set<string>();
  const mismatches: string[] = [];
  let { content } = minimal;
  let accepted = 0;
  const first = await kind.apply(kind.named(content, "minimal"), { isDryRun: true });
  assert.is(first.refusal, "", `the minimal ${minimal.kind} is refused`);
  for (let step = 0; step < STEPS; step++) {
    const { object, path } = grower.grow(content);
    const desired = kind.named(object, `step-${step}`);
    const { text } = await kind.apply(desired, { isDryRun: true });
    if (text === undefined) continue;
    const verdict = kind.verdictOf(desired, text);
    if (!verdict.matches) {
      mismatches.push(`${path}: ${verdict.path} ${verdict.reason}: ${JSON.stringify(desired)} → ${text}`);
      continue;
    }
    content = object;
    accepted++;
    paths.add(path);
  }
  return { content, accepted, paths, mismatches, grower };
}

suite(`match, of every built-in kind, with seed ${SEED}`, (test) => {
  for (const minimal of minimalObjects) {
    const { apiVersion, kind: name, isOnlyTried } = minimal;
    const random = randomOf(SEED + apiVersion.length * 31 + name.length);
    test(
      `${apiVersion} ${name}: what was applied matches, and what matches is not changed by an apply`,
      async () => {
        const kind = new Kind(await server(), minimal);
        await kind.prepare();
        const { content, accepted, paths, mismatches, grower } = await grown(kind, minimal, random);
        console.log(`${apiVersion} ${name}: ${accepted} of ${STEPS} changes taken, in ${paths.size} places`);
        assert.equal(mismatches, []);
        assert.ok(accepted >= MIN_ACCEPTED, `only ${accepted} of ${STEPS} changes were taken`);
        if (isOnlyTried !== undefined) return;
        const desired = kind.named(content, "stored");
        const stored = await kind.apply(desired, { isDryRun: false });
        assert.is(stored.refusal, "");
        assert.ok(kind.verdictOf(desired, stored.text!).matches);
        const again = await kind.apply(desired, { isDryRun: false });
        assert.equal(contentOf(again.text!), contentOf(stored.text!));
        for (let mutation = 0; mutation < 15; mutation++) {
          const { object, path } = grower.grow(content);
          const changed = kind.named(object, "stored");
          const verdict = kind.verdictOf(changed, again.text!);
          const { text } = await kind.apply(changed, { isDryRun: true });
          // What the server refuses to change has to be sent, so that it is said.
          const isUnchanged = text !== undefined && isDeepStrictEqual(contentOf(text), contentOf(again.text!));
          assert.ok(isUnchanged || !verdict.matches, `a change of ${path} was not seen: ${JSON.stringify(changed)}`);
        }
      },
      { timeoutMs: isRealApiServer ? 60_000 : 30_000 },
    );
  }
});

// The matcher against what an API server makes of random objects of every built-in kind that can be applied. Runs on a real kube-apiserver,
// too, with TEST_API_SERVER=real. TEST_SEED gives other objects, MATCH_STEPS more of them.
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "#apiserver/json.js";
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { decodeResource } from "#runtime/client/object-decoder.js";
import { objectPath } from "#runtime/client/api-client.js";
import { findDifferences, type Difference } from "#runtime/apply/match.js";
import { parseOwnedFields, schemaOf } from "#runtime/apply/owned-fields.js";
import { withEncodedData } from "#runtime/apply/write.js";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../../support/api/api-server.js";
import { ObjectGrower, randomOf, type Random } from "../../../support/kinds/grown-objects.js";
import { builtinDefinition, type JsonResource } from "../../../support/kinds/kind-definitions.js";
import { minimalObjects, OWN_NAMESPACE, type MinimalObject } from "../../../support/kinds/minimal-objects.js";
import { isThorough, runs, seed } from "../../../support/runs.js";
import { assert, shared, suite } from "../../../support/suite.js";

const FIELD_MANAGER = "laws";
const STEPS = Number(process.env["MATCH_STEPS"] ?? (isRealApiServer ? 25 : Math.max(6, runs(12))));
const MUTATIONS = isRealApiServer || isThorough ? 15 : 2;
/** How many changes the server has to take, so that the laws are known to have been tried. */
const MIN_ACCEPTED = 3;

/** Which share of the kinds is tried even where there is little time: one of so many. */
const TRIED_EVERY = 4;

const server = shared(() => startTestApiServer());

/**
 * Where the answer to an apply does not match, because the server stores something else, or nothing, in a way that no schema tells. Such an
 * object is applied once more after every start of an operator, and recognised by what the server made of it then.
 */
const UNRECOGNISED: { readonly [kind: string]: { readonly [path: string]: string } } = {
  "*": {
    "metadata.managedFields": "nobody sends them in a template",
    "spec.schedulingGroup": "not there unless a feature gate is on",
    serviceAccount: "an old name of serviceAccountName, which wins",
    "rollingUpdate.maxUnavailable": "not there unless a feature gate is on",
  },
  HorizontalPodAutoscaler: { "spec.metrics": "the CPU, if the list is empty", policies: "two, if the list is empty" },
  MutatingAdmissionPolicy: { "spec.matchConditions": "one without a name" },
  Secret: { type: "Opaque, if it is empty" },
  LimitRange: { "spec.limits": "some limits are derived from others" },
  ReplicationController: { "spec.selector": "the labels of the template, if it is empty" },
  CSIDriver: { "spec.preventPodSchedulingIfMissing": "not there unless a feature gate is on" },
  CertificateSigningRequest: { "spec.request": "nobody owns the spec, which cannot be changed" },
  EndpointSlice: { endpoints: "a deprecated topology is dropped" },
  FlowSchema: { "spec.matchingPrecedence": "0 is taken for nothing, which becomes 1000" },
  Job: { "spec.selector": "made by the server" },
  Lease: {
    "spec.preferredHolder": "not there unless a feature gate is on",
    "spec.strategy": "not there unless a feature gate is on",
  },
  Namespace: { "spec.finalizers": "the server adds its own" },
  NetworkPolicy: { "spec.policyTypes": "derived from the rules if it is empty" },
  Node: {
    "spec.configSource": "not stored any more",
    "spec.podCIDRs": "told apart by value, and the first is the podCIDR",
    "spec.taints": "a new node has one more",
  },
  PersistentVolumeClaim: { "spec.dataSource": "dropped, or kept in step with dataSourceRef" },
  Pod: { "spec.imagePullSecrets": "one without a name" },
  ResourceSlice: { "spec.devices": "some fields are not there unless a feature gate is on" },
  Service: {
    "spec.clusterIP": "given by the server if it is empty",
    "spec.ipFamilies": "given by the server if it is empty",
  },
};

function isUnrecognised({ kind }: MinimalObject, path: string): boolean {
  const plain = path.replace(/\[\d+\]/g, "");
  return ["*", kind].some((name) => Object.keys(UNRECOGNISED[name] ?? {}).some((known) => `${plain}.`.includes(known)));
}

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
    const name = `laws-${kind.apiVersion.replace(/\..*/, "")}-${kind.kind}`;
    this.#namespace = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  }

  async prepare(): Promise<void> {
    const namespace = { metadata: { name: this.#namespace } };
    await apiRequestOrThrow(this.#connection, "POST /api/v1/namespaces", { body: namespace });
  }

  /** What is applied under a name. */
  named(content: JsonObject, name: string): JsonResource {
    const { apiVersion, kind } = this.#kind;
    const isNamespaced = this.definition.scope === "Namespaced";
    const metadata = { ...(content["metadata"] as JsonObject | undefined), name: this.#kind.name ?? name };
    const ref = isNamespaced ? { ...metadata, namespace: this.#namespace } : metadata;
    const text = JSON.stringify({ ...content, apiVersion, kind, metadata: ref });
    const object = JSON.parse(text.replaceAll(OWN_NAMESPACE, this.#namespace)) as JsonResource;
    return withEncodedData(this.definition, object);
  }

  /** What the server answers, as text; undefined if it does not take the object. */
  async apply(desired: JsonResource, { isDryRun }: { isDryRun: boolean }): Promise<{ text?: string; refusal: string }> {
    const path = objectPath(this.definition, desired.metadata);
    const query = `?fieldManager=${FIELD_MANAGER}&force=true${isDryRun ? "&dryRun=All" : ""}`;
    const { status, text } = await apiRequest(this.#connection, `PATCH ${path}${query}`, {
      body: desired,
      contentType: "application/apply-patch+yaml",
    });
    return status < 300 ? { text, refusal: "" } : { refusal: `${status} ${text}` };
  }

  /** Returns the first place where an object is not as desired. */
  differenceOf(desired: JsonObject, answer: string): Difference | undefined {
    const { object, owned: [owned] = [] } = decodeResource<JsonResource>(Buffer.from(answer), {
      fieldManagers: [FIELD_MANAGER],
    });
    const options = { owned: parseOwnedFields(owned?.fieldsV1 ?? "{}"), schema: schemaOf(this.definition) };
    return findDifferences(structuredClone(desired), object, options)[0];
  }
}

/**
 * Whether an apply changed nothing. Some kinds count up their generation for an empty list, which is stored as none; the API server itself
 * writes the status of definitions; and a claim that names a source which is not to be had is written anew each time.
 */
function isUnchanged(after: string, before: string): boolean {
  const [one, other] = [after, before].map((text) => JSON.parse(text) as JsonResource & { status?: unknown });
  if (!isDeepStrictEqual(contentOf(one!), contentOf(other!))) return false;
  const isOthers =
    one!.metadata.generation !== other!.metadata.generation || !isDeepStrictEqual(one!.status, other!.status);
  return (
    one!.kind === "PersistentVolumeClaim" ||
    isOthers ||
    one!.metadata.resourceVersion === other!.metadata.resourceVersion
  );
}

function contentOf({ metadata, ...rest }: JsonResource): unknown {
  const { managedFields = [], ...ownMetadata } = metadata as {
    managedFields?: readonly { manager: string; time?: string }[];
  };
  const own = managedFields
    .filter(({ manager }) => manager === FIELD_MANAGER)
    .map(({ time: _time, ...entry }) => entry);
  return { ...rest, status: undefined, metadata: { ...ownMetadata, own, resourceVersion: "", generation: 0 } };
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
  // What refuses most changes gets more of them.
  for (let step = 0; step < STEPS || (accepted < MIN_ACCEPTED && step < 4 * STEPS); step++) {
    const { object, path } = grower.grow(content);
    const desired = kind.named(object, `step-${step}`);
    const { text } = await kind.apply(desired, { isDryRun: true });
    if (text === undefined) continue;
    const difference = kind.differenceOf(desired, text);
    if (difference !== undefined && !isUnrecognised(minimal, difference.path))
      mismatches.push(`${path}: ${difference.path} ${difference.reason}: ${JSON.stringify(desired)} → ${text}`);
    accepted++;
    paths.add(path);
    if (difference === undefined) content = object;
  }
  return { content, accepted, paths, mismatches, grower };
}

suite(`matcher for built-in kinds, seed ${seed}`, (test) => {
  for (const [index, minimal] of minimalObjects.entries()) {
    const { apiVersion, kind: name, isOnlyTried } = minimal;
    const random = randomOf(seed + apiVersion.length * 31 + name.length);
    const declare = isRealApiServer || index % TRIED_EVERY === 0 ? test : test.thorough;
    declare(
      `${apiVersion} ${name}: matches an applied object, and detects each change that an apply would make`,
      async () => {
        const kind = new Kind(await server(), minimal);
        await kind.prepare();
        const { content, accepted, paths, mismatches, grower } = await grown(kind, minimal, random);
        console.log(`${apiVersion} ${name}: ${accepted} changes taken, in ${paths.size} places`);
        assert.equal(mismatches, []);
        assert.ok(accepted >= MIN_ACCEPTED, `only ${accepted} changes were taken`);
        if (isOnlyTried !== undefined) return;
        const desired = kind.named(content, "stored");
        const stored = await kind.apply(desired, { isDryRun: false });
        assert.is(stored.refusal, "");
        assert.is(kind.differenceOf(desired, stored.text!), undefined);
        const again = await kind.apply(desired, { isDryRun: false });
        // An immutable Secret without data is taken for changed, though it is the same.
        if (again.refusal.includes("is immutable")) return;
        assert.is(again.refusal, "", `applying ${JSON.stringify(desired)} once more`);
        assert.ok(isUnchanged(again.text!, stored.text!), `${stored.text} became ${again.text}`);
        for (let mutation = 0; mutation < MUTATIONS; mutation++) {
          const { object, path } = grower.grow(content);
          const changed = kind.named(object, "stored");
          const difference = kind.differenceOf(changed, again.text!);
          const { text, refusal } = await kind.apply(changed, { isDryRun: true });
          // An empty list is another value to what checks that nothing changes, and the same when it is stored.
          if (refusal.includes("immutable") && JSON.stringify(object).includes("[]")) continue;
          // What the server refuses to change has to be sent, so that it is said.
          const hasNoEffect = text !== undefined && isUnchanged(text, again.text!);
          assert.ok(
            hasNoEffect || difference !== undefined,
            `a change of ${path} was not seen: ${JSON.stringify(changed)}`,
          );
        }
      },
      { timeoutMs: isRealApiServer ? 60_000 : 30_000 },
    );
  }
});

// Conversion webhooks; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import {
  apiRequest,
  apiRequestOrThrow,
  type ApiAnswer,
  type ApiObject,
  type Connection,
} from "../../support/api/api-request.js";
import { installCrd, startTestApiServer } from "../../support/api/api-server.js";
import {
  answerOf,
  convert,
  formsOf,
  gadget,
  gadgetDefinition,
  GROUP,
  PATHS,
  SUCCESS,
  type Convert,
  type Form,
  type Version,
} from "../../support/api/converted-gadgets.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startWebhookServer } from "../../support/api/webhook-server.js";
import { eventsUntil, openWatch, type WatchEvent } from "../../support/api/watch-client.js";
import { waitFor } from "#apiserver/wait-for.js";

const DEFINITION = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.${GROUP}`;

let answer: Convert = convert;

/** Answers in another way while `run` runs. */
async function whileAnswering(other: Convert, run: () => Promise<void>): Promise<void> {
  answer = other;
  try {
    await run();
  } finally {
    answer = convert;
  }
}

const server = shared(async () => {
  const hooks = await startWebhookServer((_path, request) => answer(request));
  const started = await startTestApiServer();
  const clientConfig = { url: `${hooks.url}/convert`, caBundle: hooks.caBundle };
  await installCrd(started, gadgetDefinition(clientConfig));
  await waitFor("the namespace default", async () => {
    const { status } = await apiRequest(started, "GET /api/v1/namespaces/default");
    return status === 200;
  });
  return Object.assign(started, {
    hooks,
    clientConfig,
    async [Symbol.asyncDispose]() {
      await started.close();
      await hooks[Symbol.asyncDispose]();
    },
  });
});

const create = (to: Connection, version: Version, name: string, spec: object): Promise<ApiObject> =>
  apiRequestOrThrow(to, `POST ${PATHS[version]}`, { body: gadget(version, name, spec) });
const read = (to: Connection, version: Version, name: string): Promise<ApiObject> =>
  apiRequestOrThrow(to, `GET ${PATHS[version]}/${name}`);
const merge = (to: Connection, path: string, body: object): Promise<ApiObject> =>
  apiRequestOrThrow(to, `PATCH ${path}`, { body, contentType: "application/merge-patch+json" });
const apply = (
  to: Connection,
  manager: string,
  body: ReturnType<typeof gadget>,
): Promise<ApiAnswer<ApiObject & { message: string }>> =>
  apiRequest(
    to,
    `PATCH /apis/${body.apiVersion}/namespaces/default/gadgets/${body.metadata.name}?fieldManager=${manager}`,
    {
      body,
      contentType: "application/apply-patch+yaml",
    },
  );

const watchPath = (name: string, resourceVersion: string): string =>
  `${PATHS.v2}?watch=true&timeoutSeconds=5&fieldSelector=metadata.name%3D${name}&resourceVersion=${resourceVersion}`;

/** Follows gadgets in v2 by a prefix of their names, as a reflector of client-go does: resumes after a failure, and lists again after 410. */
class Informer {
  readonly #to: Connection;
  readonly #prefix: string;
  readonly #known = new Map<string, unknown>();
  #resourceVersion: string | undefined;

  constructor(to: Connection, prefix: string) {
    this.#to = to;
    this.#prefix = prefix;
  }

  /** Lists, or watches for at most a second; returns what is known then. */
  async poll(): Promise<string> {
    if (this.#resourceVersion === undefined) await this.#list();
    else await this.#watch(1);
    return [...this.#known].map(([name, length]) => `${name}:${String(length)}`).join(" ");
  }

  /** Watches, or lists, and ends as that fails. */
  async fail(): Promise<void> {
    if (this.#resourceVersion === undefined) await this.#list().catch(() => undefined);
    else await this.#watch(5);
  }

  async #list(): Promise<void> {
    const { items = [], metadata } = await apiRequestOrThrow<ApiObject>(this.#to, `GET ${PATHS.v2}`);
    this.#known.clear();
    for (const item of items) this.#note({ type: "ADDED", object: item });
    this.#resourceVersion = metadata.resourceVersion;
  }

  async #watch(seconds: number): Promise<void> {
    const path = `${PATHS.v2}?watch=true&timeoutSeconds=${seconds}&resourceVersion=${this.#resourceVersion}`;
    using watch = await openWatch(this.#to, path);
    // While a real server reads its cache again it asks to come back later.
    if (watch.status !== 200) return;
    await eventsUntil(watch, (event) => {
      this.#note(event);
      return event.type === "ERROR";
    });
  }

  #note({ type, object }: Pick<WatchEvent, "type" | "object">): void {
    if (type === "ERROR") {
      if (object.code === 410) this.#resourceVersion = undefined;
      return;
    }
    this.#resourceVersion = object.metadata.resourceVersion;
    const { name } = object.metadata;
    if (!name.startsWith(this.#prefix)) return;
    if (type === "DELETED") this.#known.delete(name);
    else this.#known.set(name, (object.spec as { length?: string })["length"]);
  }
}

suite("conversion webhook", (test) => {
  test("converts objects between all served versions on read, write, list and patch", async () => {
    const to = await server();
    await create(to, "v1", "both-1", { size: 3, kept: "a" });
    assert.equal((await read(to, "v2", "both-1")).spec, { length: "3", kept: "a" });
    const created = await create(to, "v2", "both-2", { length: "5", kept: "b" });
    assert.is(created.apiVersion, `${GROUP}/v2`);
    assert.equal(created.spec, { length: "5", kept: "b" });
    assert.equal((await read(to, "v1", "both-2")).spec, { size: 5, kept: "b" });
    const patched = await merge(to, `${PATHS.v2}/both-1`, { spec: { length: "4" } });
    assert.equal([patched.spec, patched.metadata.generation], [{ length: "4", kept: "a" }, 2]);
    const again = await merge(to, `${PATHS.v2}/both-1`, { spec: { length: "4" } });
    assert.is(again.metadata.resourceVersion, patched.metadata.resourceVersion);
    const { items = [] } = await apiRequestOrThrow<ApiObject>(to, `GET ${PATHS.v2}`);
    assert.equal(
      items
        .filter(({ metadata }) => metadata.name.startsWith("both-"))
        .map(({ apiVersion, spec }) => [apiVersion, spec]),
      [
        [`${GROUP}/v2`, { length: "4", kept: "a" }],
        [`${GROUP}/v2`, { length: "5", kept: "b" }],
      ],
    );
    const dry = await apiRequestOrThrow<ApiObject>(to, `POST ${PATHS.v2}?dryRun=All`, {
      body: gadget("v2", "both-3", { length: "7" }),
    });
    assert.equal(dry.spec, { length: "7" });
  });

  test("is called with the configured review version and path, without resourceVersion", async () => {
    const to = await server();
    await create(to, "v1", "asked", { size: 1 });
    to.hooks.requests.length = 0;
    await read(to, "v2", "asked");
    const asked = to.hooks.requests.map(({ path, apiVersion, request }) => ({
      path,
      apiVersion,
      to: request["desiredAPIVersion"],
      metadata: (request["objects"] as Form[]).map(({ metadata }) => Object.keys(metadata).sort().join(" ")),
    }));
    const metadata = ["creationTimestamp generation managedFields name namespace uid"];
    assert.equal(asked[0], {
      path: "/convert?timeout=30s",
      apiVersion: "apiextensions.k8s.io/v1",
      to: `${GROUP}/v2`,
      metadata,
    });
  });

  test("converts watch events into the version of the watch", async () => {
    const to = await server();
    await create(to, "v1", "watched", { size: 1 });
    using watch = await openWatch(to, `${PATHS.v2}?watch=true&fieldSelector=metadata.name%3Dwatched`);
    // The state at the start is converted before it is shown.
    const events = await eventsUntil(watch, ({ type }) => type === "ADDED");
    await merge(to, `${PATHS.v1}/watched`, { spec: { size: 2 } });
    await apiRequestOrThrow(to, `DELETE ${PATHS.v1}/watched`);
    events.push(...(await eventsUntil(watch, ({ type }) => type === "DELETED")));
    const shown = ({ type, object }: WatchEvent) => [type, object.apiVersion, object.spec];
    assert.equal(events.map(shown), [
      ["ADDED", `${GROUP}/v2`, { length: "1" }],
      ["MODIFIED", `${GROUP}/v2`, { length: "2" }],
      ["DELETED", `${GROUP}/v2`, { length: "2" }],
    ]);
  });

  test("converts past events when a watch resumes", async () => {
    const to = await server();
    const { metadata } = await create(to, "v1", "resumed", { size: 1 });
    await merge(to, `${PATHS.v1}/resumed`, { spec: { size: 2 } });
    await apiRequestOrThrow(to, `DELETE ${PATHS.v1}/resumed`);
    using watch = await openWatch(to, watchPath("resumed", metadata.resourceVersion));
    const events = await eventsUntil(watch, ({ type }) => type === "DELETED");
    assert.equal(
      events.map(({ type, object }) => [type, object.spec]),
      [
        ["MODIFIED", { length: "2" }],
        ["DELETED", { length: "2" }],
      ],
    );
  });

  for (const [title, change] of [
    ["an update", (to: Connection) => merge(to, `${PATHS.v1}/back-again`, { spec: { size: 2 } })],
    ["a deletion", (to: Connection) => apiRequestOrThrow(to, `DELETE ${PATHS.v1}/back-again`)],
    ["a creation", (to: Connection) => create(to, "v1", "back-again-2", { size: 2 })],
  ] as const) {
    test(`recovers: watches deliver ${title} after failed conversions`, async () => {
      const to = await server();
      await create(to, "v1", "back-again", { size: 1 });
      const informer = new Informer(to, "back-again");
      await waitFor("the object is known", () => informer.poll().then((known) => known === "back-again:1"));
      await whileAnswering(
        () => ({ response: { result: { status: "Failed", message: "out of order" } } }),
        async () => {
          await change(to);
          // One watch breaks at the event, the next ones at their start.
          await informer.fail();
          await informer.fail();
        },
      );
      const expected = { "an update": "back-again:2", "a deletion": "", "a creation": "back-again:1 back-again-2:2" };
      await waitFor("the change is known", () => informer.poll().then((known) => known === expected[title]));
      for (const name of ["back-again", "back-again-2"]) await apiRequest(to, `DELETE ${PATHS.v1}/${name}`);
    });
  }

  test("converts managed fields for conflicts between versions of an apply", async () => {
    const to = await server();
    await apply(to, "first", gadget("v2", "owned", { length: "1", kept: "a" }));
    const conflict = await apply(to, "second", gadget("v1", "owned", { size: 2 }));
    assert.is(conflict.status, 409);
    assert.is(conflict.body.message, 'Apply failed with 1 conflict: conflict with "first": .spec.length');
    assert.is((await apply(to, "second", gadget("v1", "owned", { size: 1 }))).status, 200);
    // Both fields were applied in the other version: one is still wanted, the other is not.
    const { body } = await apply(to, "first", gadget("v1", "owned", { size: 1 }));
    assert.equal(body.spec, { size: 1 });
    const owners = body.metadata.managedFields as unknown as { manager: string; fieldsV1: object }[];
    const ownedSize = { "f:spec": { "f:size": {} } };
    assert.equal(Object.fromEntries(owners.map(({ manager, fieldsV1 }) => [manager, fieldsV1])), {
      first: ownedSize,
      second: ownedSize,
    });
  });

  test("converts status writes, and deletions that a finalizer holds", async () => {
    const to = await server();
    await apiRequestOrThrow(to, `POST ${PATHS.v2}`, {
      body: gadget("v2", "held", { length: "1" }, { finalizers: ["example.com/held"] }),
    });
    const told = await merge(to, `${PATHS.v2}/held/status`, { status: { phase: "Ready" } });
    assert.equal([told.spec, told.status, told.metadata.generation], [{ length: "1" }, { phase: "Ready" }, 1]);
    const marked = await apiRequestOrThrow<ApiObject>(to, `DELETE ${PATHS.v2}/held`);
    assert.equal([marked.spec, marked.metadata.generation], [{ length: "1" }, 2]);
    assert.ok(marked.metadata.deletionTimestamp);
    const last = await merge(to, `${PATHS.v2}/held`, { metadata: { finalizers: null } });
    assert.equal(last.spec, { length: "1" });
    assert.is((await apiRequest(to, `GET ${PATHS.v2}/held`)).status, 404);
  });

  test("may change labels and annotations, other metadata is ignored, and unknown fields are pruned", async () => {
    const to = await server();
    await create(to, "v1", "labelled", { size: 1 });
    const metadata = { labels: { a: "b" }, annotations: { c: "d" }, finalizers: ["example.com/no"], generation: 77 };
    const other: Convert = (request) =>
      answerOf(
        formsOf(request).map((form) => ({
          ...form,
          metadata: { ...form.metadata, ...metadata },
          spec: { ...form.spec, unknown: 1 },
        })),
      );
    await whileAnswering(other, async () => {
      const shown = await read(to, "v2", "labelled");
      const { labels, annotations, finalizers, generation } = shown.metadata;
      assert.equal([labels, annotations, finalizers, generation], [{ a: "b" }, { c: "d" }, undefined, 1]);
      assert.equal(shown.spec, { length: "1" });
    });
  });

  test("fails reads with 500 and the reason if its response is invalid", async () => {
    const to = await server();
    const { metadata } = await create(to, "v1", "wrong", { size: 1 });
    const changed =
      (over: object): Convert =>
      (request) =>
        answerOf(formsOf(request).map((form) => ({ ...form, ...over })));
    const withMetadata =
      (over: object): Convert =>
      (request) =>
        answerOf(formsOf(request).map((form) => ({ ...form, metadata: { ...form.metadata, ...over } })));
    const response =
      (body: object): Convert =>
      () => ({ response: body });
    const body =
      (value: unknown, status = 200): Convert =>
      () => ({ status, body: JSON.stringify(value) });
    const cases: [Convert, string][] = [
      [response({ result: { status: "Failed", message: "no way" } }), "failed: no way"],
      [response({ result: { status: "Failed" } }), "failed: response.result.status was 'Failed', not 'Success'"],
      [response({}), "failed: response.result.status was '', not 'Success'"],
      [() => answerOf([]), "returned 0 objects, expected 1"],
      [(request) => answerOf([...formsOf(request), ...formsOf(request)]), "returned 2 objects, expected 1"],
      [
        changed({ apiVersion: `${GROUP}/v3` }),
        `returned invalid object at index 0: invalid groupVersion (expected ${GROUP}/v2, received ${GROUP}/v3)`,
      ],
      [
        changed({ kind: "Other" }),
        "returned invalid object at index 0: invalid kind (expected Gadget, received Other)",
      ],
      [withMetadata({ name: "x" }), "returned invalid object: must have the same name: wrong != x"],
      [withMetadata({ namespace: "x" }), "returned invalid object: must have the same namespace: default != x"],
      [withMetadata({ uid: "x" }), `returned invalid object: must have the same UID: ${metadata.uid} != x`],
      [changed({ metadata: ["a"] }), "returned invalid object: must have the same name: wrong != "],
      [
        withMetadata({ labels: { a: 1 } }),
        "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
      ],
      [
        withMetadata({ labels: ["a"] }),
        "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
      ],
      [
        withMetadata({ annotations: { "A b": "" } }),
        'returned invalid metadata: metadata.annotation: Invalid value: "A b": name part must consist of alphanumeric characters, ' +
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', " +
          "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
      [body({ kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1" }), "failed: no response provided"],
      [
        body({ kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1", response: { uid: "" } }),
        'failed: expected response.uid="UID", got ""',
      ],
      [
        body({ kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1beta1" }),
        "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
      ],
      [
        body({ kind: "Other", apiVersion: "apiextensions.k8s.io/v1" }),
        'failed: no kind "Other" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
      ],
      [
        body({ kind: "Status", apiVersion: "v1", status: "Failure", message: "out of order", code: 500 }, 500),
        "failed: out of order",
      ],
      [body({}), "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="],
      [
        body({ apiVersion: "apiextensions.k8s.io/v1", response: { uid: "" } }),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=",
      ],
      [
        body({ kind: "ConversionReview", response: { uid: "" } }),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=ConversionReview",
      ],
      [
        body({ apiVersion: "v1" }),
        'failed: no kind "ConversionReview" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
      ],
      [body({}, 404), "failed: the server could not find the requested resource"],
    ];
    for (const [other, message] of cases) {
      await whileAnswering(other, async () => {
        const failed = await apiRequest<{ message: string; reason?: string }>(to, `GET ${PATHS.v2}/wrong`);
        const text = failed.body.message.replace(/uid="[^"]*"/, 'uid="UID"');
        const subject = `conversion webhook for ${GROUP}/v1, Kind=Gadget`;
        assert.equal([failed.status, failed.body.reason, text], [500, undefined, `${subject} ${message}`]);
      });
    }
    assert.equal((await read(to, "v2", "wrong")).spec, { length: "1" });
  });

  test("fails writes of other versions with 500, and drops managed fields in the stored version", async () => {
    const to = await server();
    await create(to, "v2", "failing", { length: "1" });
    await whileAnswering(
      () => ({ response: { result: { status: "Failed", message: "no way" } } }),
      async () => {
        const post = await apiRequest<{ message: string }>(to, `POST ${PATHS.v2}`, {
          body: gadget("v2", "never", { length: "1" }),
        });
        assert.equal(
          [post.status, post.body.message],
          [500, `conversion webhook for ${GROUP}/v2, Kind=Gadget failed: no way`],
        );
        assert.is((await apiRequest(to, `DELETE ${PATHS.v2}/failing`)).status, 500);
        const { spec, metadata } = await merge(to, `${PATHS.v1}/failing`, { spec: { size: 9 } });
        assert.equal([spec, metadata.managedFields], [{ size: 9 }, undefined]);
      },
    );
    assert.is((await apiRequest(to, `GET ${PATHS.v1}/never`)).status, 404);
    assert.equal((await read(to, "v2", "failing")).spec, { length: "9" });
  });

  test("loses no concurrent writes in two versions", async () => {
    const to = await server();
    await create(to, "v1", "shared", { size: 1 });
    const names = Array.from({ length: 12 }, (_, index) => `label-${index}`);
    await Promise.all(
      names.map((name, index) =>
        merge(to, `${PATHS[index % 2 === 0 ? "v1" : "v2"]}/shared`, { metadata: { labels: { [name]: "" } } }),
      ),
    );
    assert.equal(Object.keys((await read(to, "v1", "shared")).metadata.labels ?? {}).sort(), names.sort());
  });

  test("converts objects for admission webhooks of another version", async () => {
    const to = await server();
    const seen: (Form | null)[] = [];
    await using hooks = await startWebhookServer((_path, request) => {
      seen.push(request.object as Form | null);
      return { response: { allowed: true } };
    });
    const webhook = {
      name: "gadgets.example.com",
      clientConfig: { url: hooks.url, caBundle: hooks.caBundle },
      rules: [{ apiGroups: [GROUP], apiVersions: ["v1"], operations: ["CREATE"], resources: ["gadgets"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    };
    const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    await apiRequestOrThrow(to, `POST ${path}`, { body: { metadata: { name: "gadgets" }, webhooks: [webhook] } });
    try {
      await waitFor("the webhook is asked", async () => {
        await apiRequestOrThrow(to, `POST ${PATHS.v2}?dryRun=All`, { body: gadget("v2", "seen", { length: "3" }) });
        return seen.length > 0;
      });
    } finally {
      await apiRequestOrThrow(to, `DELETE ${path}/gadgets`);
    }
    assert.equal([seen[0]?.["apiVersion"], seen[0]?.spec], [`${GROUP}/v1`, { size: 3 }]);
  });

  // The last one: it changes the definition.
  test("is reconfigured by a change of the CRD: review version, missing Service, strategy None", async () => {
    const to = await server();
    await create(to, "v1", "changing", { size: 1 });
    const change = (conversion: object) => merge(to, DEFINITION, { spec: { conversion } });
    await change({ webhook: { conversionReviewVersions: ["v7", "v1beta1", "v1"] } });
    await waitFor("the webhook is asked with the older review", async () => {
      to.hooks.requests.length = 0;
      await apiRequest(to, `GET ${PATHS.v2}/changing`);
      return to.hooks.requests.some(({ apiVersion }) => apiVersion === "apiextensions.k8s.io/v1beta1");
    });
    // Which never had to repeat the uid.
    await whileAnswering(
      (request) => ({ response: { uid: "", result: SUCCESS, convertedObjects: formsOf(request) } }),
      async () => assert.equal((await read(to, "v2", "changing")).spec, { length: "1" }),
    );
    const service = { name: "missing", namespace: "default", path: "/c" };
    await change({ webhook: { clientConfig: { url: null, service } } });
    const failure = `failed: Post "https://missing.default.svc:443/c?timeout=30s": service "missing" not found`;
    await waitFor("the Service is looked for", async () => {
      const { text } = await apiRequest(to, `GET ${PATHS.v2}/changing`);
      return text.includes(JSON.stringify(failure).slice(1, -1));
    });
    await change({ strategy: "None", webhook: null });
    await waitFor("nobody is asked", async () => {
      const { body } = await apiRequest(to, `GET ${PATHS.v2}/changing`);
      return body.apiVersion === `${GROUP}/v2`;
    });
    assert.equal((await read(to, "v2", "changing")).spec, {});
  });
});

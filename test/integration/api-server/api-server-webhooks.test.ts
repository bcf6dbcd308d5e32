// Admission webhooks; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";
import { ADMISSION, ALLOWED, configMap, hookedOn, patchOf, PLURALS } from "../../support/hooked.js";
import type { WebhookAnswer } from "../../support/api/webhook-server.js";
import { createServingCertificate } from "#apiserver/x509/authority.js";
import { waitFor } from "#apiserver/wait-for.js";

const server = shared(() => startTestApiServer({ crds: ["test/conformance/definitions.yaml"] }));
const hooked = async (answers: Parameters<typeof hookedOn>[1]) => hookedOn(await server(), answers);

suite("admission webhooks", (test) => {
  test("share a connection until the caBundle changes", async () => {
    await using hook = await hooked([{ type: "Validating", answer: () => ALLOWED }]);
    const { to, configMaps, requests, connections, configuration } = hook;
    const before = connections();
    for (const name of ["a", "b", "c", "d", "e", "f"])
      await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap(name) });
    assert.is(requests.length, 6);
    assert.ok(connections() - before <= 1, `${connections() - before} new connections`);
    const caBundle = Buffer.from(createServingCertificate().ca).toString("base64");
    const body = [{ op: "replace", path: "/webhooks/0/clientConfig/caBundle", value: caBundle }];
    await apiRequestOrThrow(to, `PATCH ${configuration}`, { body, contentType: "application/json-patch+json" });
    await waitFor("the connection of the former authority is left", async () => {
      const { status, text } = await apiRequest(to, `POST ${configMaps}?dryRun=All`, { body: configMap("g") });
      return status === 500 && text.includes("x509: certificate signed by unknown authority");
    });
  });

  test("receive the old and new object, dryRun and options of every write", async () => {
    await using hook = await hooked([{ type: "Validating", answer: () => ALLOWED }]);
    const { to, configMaps, requests } = hook;
    await apiRequestOrThrow(to, `POST ${configMaps}?fieldManager=me`, { body: configMap("seen", { a: "1" }) });
    await apiRequestOrThrow(to, `PATCH ${configMaps}/seen?dryRun=All`, {
      body: { data: { a: "2" } },
      contentType: "application/merge-patch+json",
    });
    await apiRequestOrThrow(to, `DELETE ${configMaps}/seen`, { body: { gracePeriodSeconds: 0 } });
    const told = requests.map(({ request: { operation, name, dryRun, object, oldObject, options } }) => ({
      operation,
      name,
      dryRun,
      data: [oldObject?.["data"], object?.["data"]],
      options,
    }));
    const kindOf = (kind: string) => ({ kind, apiVersion: "meta.k8s.io/v1" });
    assert.equal(told, [
      {
        operation: "CREATE",
        name: "seen",
        dryRun: false,
        data: [undefined, { a: "1" }],
        options: { ...kindOf("CreateOptions"), fieldManager: "me" },
      },
      {
        operation: "UPDATE",
        name: "seen",
        dryRun: true,
        data: [{ a: "1" }, { a: "2" }],
        options: { ...kindOf("UpdateOptions"), dryRun: ["All"] },
      },
      {
        operation: "DELETE",
        name: "seen",
        dryRun: false,
        data: [{ a: "1" }, undefined],
        options: { ...kindOf("DeleteOptions"), gracePeriodSeconds: 0 },
      },
    ]);
  });

  test("reject a write with their message, reason and code", async () => {
    const status = { message: "not today", code: 409, reason: "Conflict" };
    await using hook = await hooked([{ type: "Validating", answer: () => ({ response: { allowed: false, status } }) }]);
    const { to, configMaps } = hook;
    const answer = await apiRequest<{ message: string; reason: string }>(to, `POST ${configMaps}`, {
      body: configMap("refused"),
    });
    assert.is(answer.status, 409);
    assert.is(answer.body.reason, "Conflict");
    assert.is(answer.body.message, 'admission webhook "hook-0.example.com" denied the request: not today');
    assert.is((await apiRequest(to, `GET ${configMaps}/refused`)).status, 404);
  });

  test("persist mutations, pass them to later webhooks, and leave them without a field manager", async () => {
    await using hook = await hooked([
      { type: "Mutating", answer: () => patchOf({ op: "add", path: "/data/first", value: "1" }) },
      {
        type: "Mutating",
        answer: ({ object }) =>
          patchOf({ op: "add", path: "/data/second", value: JSON.stringify(object?.["data"] ?? null) }),
      },
      {
        type: "Validating",
        answer: ({ object }) => ({ response: { allowed: true, warnings: [JSON.stringify(object?.["data"])] } }),
      },
    ]);
    const { to, configMaps } = hook;
    const apply = { contentType: "application/apply-patch+yaml", body: configMap("changed", { own: "0" }) };
    const answer = await apiRequest(to, `PATCH ${configMaps}/changed?fieldManager=me`, apply);
    const data = { first: "1", own: "0", second: '{"first":"1","own":"0"}' };
    const sorted = (object: unknown) => Object.entries(object as object).sort();
    assert.equal(
      sorted((answer.body as ApiObject & { data: object }).data).map(([name]) => name),
      Object.keys(data),
    );
    const owned = (answer.body.metadata.managedFields ?? []) as { manager: string; fieldsV1?: { "f:data"?: object } }[];
    assert.equal(
      owned.map(({ manager, fieldsV1 }) => [manager, Object.keys(fieldsV1?.["f:data"] ?? {})]),
      [["me", ["f:own"]]],
    );
    assert.match(String(answer.headers["warning"]), "second");
  });

  test("fail the update with 422 if a patch changes the name", async () => {
    await using hook = await hooked([
      {
        type: "Mutating",
        answer: ({ operation }) =>
          operation === "UPDATE" ? patchOf({ op: "replace", path: "/metadata/name", value: "other" }) : ALLOWED,
      },
    ]);
    const { to, configMaps } = hook;
    const body = await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("named") });
    const message = 'ConfigMap "other" is invalid: metadata.name: Invalid value: "other": field is immutable';
    const contentType = "application/merge-patch+json";
    for (const [method, options] of [
      ["PUT", { body }],
      ["PATCH", { body: { data: { a: "b" } }, contentType }],
    ] as const) {
      const answer = await apiRequest<{ message: string; reason: string }>(
        to,
        `${method} ${configMaps}/named`,
        options,
      );
      assert.equal([answer.status, answer.body.reason, answer.body.message], [422, "Invalid", message], method);
    }
    assert.is((await apiRequest(to, `GET ${configMaps}/named`)).body.metadata.name, "named");
    assert.is((await apiRequest(to, `GET ${configMaps}/other`)).status, 404);
  });

  test("fail the request with 500 if a patch breaks a field type", async () => {
    await using hook = await hooked([
      { type: "Mutating", answer: () => patchOf({ op: "add", path: "/data", value: 3 }) },
    ]);
    const answer = await apiRequest<{ message: string }>(hook.to, `POST ${hook.configMaps}`, {
      body: configMap("broken"),
    });
    assert.is(answer.status, 500);
    assert.is(
      answer.body.message,
      "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
    );
  });

  test("are reinvoked with reinvocationPolicy IfNeeded after a later mutation", async () => {
    const seen: unknown[] = [];
    await using hook = await hooked([
      {
        type: "Mutating",
        over: { reinvocationPolicy: "IfNeeded" },
        answer({ object }) {
          seen.push(Object.keys((object?.["data"] ?? {}) as object));
          return ALLOWED;
        },
      },
      { type: "Mutating", answer: () => patchOf({ op: "add", path: "/data/late", value: "1" }) },
    ]);
    await apiRequestOrThrow(hook.to, `POST ${hook.configMaps}`, { body: configMap("again", { a: "1" }) });
    assert.equal(
      seen.map((keys) => (keys as string[]).sort()),
      [["a"], ["a", "late"]],
    );
  });

  test("fail the request with 500 if unreachable under failurePolicy Fail, and are skipped under Ignore", async () => {
    const nowhere = { clientConfig: { url: "https://127.0.0.1:9/nowhere" } };
    for (const [failurePolicy, status] of [
      ["Ignore", 201],
      ["Fail", 500],
    ] as const) {
      await using hook = await hooked([
        { type: "Validating", over: { ...nowhere, failurePolicy }, answer: () => ALLOWED },
      ]);
      const answer = await apiRequest<{ message: string }>(hook.to, `POST ${hook.configMaps}`, {
        body: configMap("one"),
      });
      assert.is(answer.status, status);
      if (status === 500)
        assert.is(
          answer.body.message,
          'Internal error occurred: failed calling webhook "hook-0.example.com": failed to call webhook: ' +
            'Post "https://127.0.0.1:9/nowhere?timeout=10s": dial tcp 127.0.0.1:9: connect: connection refused',
        );
    }
  });

  test("fail the request with 500 after timeoutSeconds", async () => {
    const never = new Promise<WebhookAnswer>(() => undefined);
    await using hook = await hooked([{ type: "Validating", over: { timeoutSeconds: 1 }, answer: () => never }]);
    const answer = await apiRequest<{ message: string }>(hook.to, `POST ${hook.configMaps}`, {
      body: configMap("late"),
    });
    assert.is(answer.status, 500);
    assert.match(answer.body.message, "context deadline exceeded");
  });

  test("are called only for writes that match rules, scope and objectSelector", async () => {
    const rule = {
      apiGroups: [""],
      apiVersions: ["v1"],
      operations: ["UPDATE"],
      resources: ["*"],
      scope: "Namespaced",
    };
    await using hook = await hooked([
      {
        type: "Validating",
        over: { rules: [rule], objectSelector: { matchExpressions: [{ key: "ask", operator: "Exists" }] } },
        answer: () => ALLOWED,
      },
    ]);
    const { to, configMaps, requests } = hook;
    await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("asked", {}, { ask: "me" }) });
    await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("other") });
    await apiRequestOrThrow(to, `PUT ${configMaps}/other`, { body: configMap("other", { a: "1" }) });
    await apiRequestOrThrow(to, `PUT ${configMaps}/asked`, { body: configMap("asked", { a: "1" }) });
    assert.equal(
      requests.map(({ request }) => `${request.operation} ${request.name}`),
      ["UPDATE asked"],
    );
  });

  test("receive a Scale for the scale subresource, and may mutate it", async () => {
    const rule = {
      apiGroups: ["example.com"],
      apiVersions: ["v1"],
      operations: ["UPDATE"],
      resources: ["widgets/scale"],
    };
    await using hook = await hooked([
      {
        type: "Mutating",
        over: { rules: [rule] },
        answer: () => patchOf({ op: "add", path: "/spec/replicas", value: 7 }),
      },
    ]);
    const widgets = hook.configMaps.replace("/api/v1", "/apis/example.com/v1").replace("configmaps", "widgets");
    const widget = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" }, spec: { replicas: 1 } };
    await apiRequestOrThrow(hook.to, `POST ${widgets}`, { body: widget });
    const patch = { contentType: "application/merge-patch+json", body: { spec: { replicas: 3 } } };
    const scale = await apiRequestOrThrow(hook.to, `PATCH ${widgets}/w/scale`, patch);
    assert.equal(scale.spec, { replicas: 7 });
    assert.equal(
      hook.requests.map(({ request: { kind, subResource, object } }) => [kind, subResource, object?.["spec"]]),
      [[{ group: "autoscaling", version: "v1", kind: "Scale" }, "scale", { replicas: 3 }]],
    );
  });

  test("do not lose concurrent writes that are stored during a call", async () => {
    let waiting = 0;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    await using hook = await hooked([
      {
        type: "Validating",
        async answer({ operation }) {
          if (operation === "UPDATE" && ++waiting <= 2) {
            if (waiting === 2) release();
            await released;
          }
          return ALLOWED;
        },
      },
    ]);
    const { to, configMaps } = hook;
    await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("raced") });
    const write = (key: string) =>
      apiRequestOrThrow(to, `PATCH ${configMaps}/raced`, {
        contentType: "application/merge-patch+json",
        body: { data: { [key]: "1" } },
      });
    await Promise.all([write("left"), write("right")]);
    const { data } = (await apiRequestOrThrow(to, `GET ${configMaps}/raced`)) as ApiObject & { data: object };
    assert.equal(data, { left: "1", right: "1" });
    assert.is(waiting, 3);
  });

  test("are not called for webhook configurations", async () => {
    const rule = { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"] };
    await using hook = await hooked([
      { type: "Validating", over: { rules: [rule] }, answer: () => ({ response: { allowed: false } }) },
    ]);
    const name = hook.configMaps.split("/")[4];
    const patch = { contentType: "application/merge-patch+json", body: { metadata: { labels: { changed: "yes" } } } };
    const path = `${ADMISSION}/${PLURALS.Validating}/${name}-0`;
    assert.is((await apiRequest(hook.to, `PATCH ${path}`, patch)).status, 200);
    assert.is((await apiRequest(hook.to, `POST ${hook.configMaps}`, { body: configMap("one") })).status, 400);
  });
});

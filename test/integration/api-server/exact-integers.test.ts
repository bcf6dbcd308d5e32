// Integers beyond 2^53, which a JavaScript number rounds: the API server keeps each int64 as it is sent.
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, type Connection } from "../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const [ODD, EVEN, LARGEST, LEAST] = [
  "9007199254740993",
  "9007199254740992",
  "9223372036854775807",
  "-9223372036854775808",
];
const VALUES = [ODD, EVEN, LARGEST, LEAST, "9223372036854775806", "-9007199254740993"];
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NUMBERS = "/apis/exact.example.com/v1/namespaces/default/numbers";

/** A definition as text, since no value of JavaScript has its integers. */
function definitionText(more = ""): string {
  const fields = VALUES.map(
    (value, index) =>
      `"f${index}":{"type":"integer","format":"int64","default":${value},"example":${value},"enum":[${VALUES.join()}]}`,
  );
  return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"numbers.exact.example.com"},"spec":{
    "group":"exact.example.com","scope":"Namespaced","names":{"plural":"numbers","singular":"number","kind":"Number","listKind":"NumberList"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
      ${fields.join()},"free":{"type":"integer","format":"int64"${more}},"list":{"type":"array","items":{"type":"integer"}},
      "raw":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}]}}`;
}

const objectText = (name: string, spec: string) =>
  `{"apiVersion":"exact.example.com/v1","kind":"Number","metadata":{"name":"${name}"},"spec":{${spec}}}`;

async function send(server: Connection, methodAndPath: string, body?: string, contentType?: string) {
  const options = { ...(body !== undefined && { body }), ...(contentType !== undefined && { contentType }) };
  const { status, text } = await apiRequest(server, methodAndPath, options);
  return { status, text };
}

async function sendOrThrow(server: Connection, methodAndPath: string, body?: string, contentType?: string) {
  const { status, text } = await send(server, methodAndPath, body, contentType);
  assert.ok(status < 300, `${methodAndPath}: ${status} ${text}`);
  return text;
}

async function createNumbers(server: Connection, more = "") {
  await sendOrThrow(server, `POST ${DEFINITIONS}`, definitionText(more));
  await waitFor("the kind is served", async () => (await send(server, `GET ${NUMBERS}`)).status === 200);
}

async function startWithNumbers(more = "") {
  const server = await startTestApiServer();
  await createNumbers(server, more);
  return server;
}

/** The integers of a member of an object, in the order of their text. */
function integersAt(text: string, member: string): string[] {
  return [...text.matchAll(new RegExp(`"${member}":\\[?((?:-?\\d+,?)+)`, "g"))].flatMap(([, found = ""]) =>
    found.split(",").filter((each) => each !== ""),
  );
}

const APPLY = "application/apply-patch+yaml";

suite("integers beyond 2^53", (test) => {
  test("are kept in defaults, enums and examples of a CRD", async () => {
    await using server = await startTestApiServer();
    const path = `${DEFINITIONS}/numbers.exact.example.com`;
    const check = (text: string) => {
      assert.equal(integersAt(text, "default"), VALUES);
      assert.equal(integersAt(text, "example"), VALUES);
      assert.equal(
        integersAt(text, "enum"),
        VALUES.flatMap(() => VALUES),
      );
    };
    check(await sendOrThrow(server, `POST ${DEFINITIONS}`, definitionText()));
    check(await sendOrThrow(server, `GET ${path}`));
    check(await sendOrThrow(server, `PATCH ${path}?fieldManager=a&force=true`, definitionText(), APPLY));
    check(
      await sendOrThrow(server, `PATCH ${path}`, '{"metadata":{"labels":{"a":"b"}}}', "application/merge-patch+json"),
    );
    await sendOrThrow(server, `DELETE ${path}`);
  });

  test("are rounded to floats in minimum and maximum of a CRD", async () => {
    await using server = await startTestApiServer();
    const text = await sendOrThrow(
      server,
      `POST ${DEFINITIONS}?dryRun=All`,
      definitionText(`,"maximum":${LARGEST},"minimum":-${ODD}`),
    );
    assert.match(text, '"maximum":9223372036854776000');
    assert.match(text, `"minimum":-${EVEN}`);
  });

  test("are kept in objects and defaults through create, get, list, patch, apply and delete", async () => {
    await using server = await startWithNumbers();
    const spec = `"free":${LARGEST},"list":[${VALUES.join()}],"raw":{"a":${LEAST},"b":[{"c":${ODD},"d":${EVEN}}]}`;
    const check = (text: string, free = LARGEST) => {
      VALUES.forEach((value, index) => assert.equal(integersAt(text, `f${index}`).at(-1), value));
      assert.equal(integersAt(text, "free").at(-1), free);
      assert.equal(integersAt(text, "list").slice(-VALUES.length), VALUES);
      for (const [member, value] of Object.entries({ a: LEAST, c: ODD, d: EVEN }))
        assert.equal(integersAt(text, member).at(-1), value);
    };
    check(await sendOrThrow(server, `POST ${NUMBERS}`, objectText("created", spec)));
    check(await sendOrThrow(server, `GET ${NUMBERS}/created`));
    check(await sendOrThrow(server, `GET ${NUMBERS}`));
    check(
      await sendOrThrow(
        server,
        `PATCH ${NUMBERS}/created`,
        '{"metadata":{"finalizers":["a.example.com/b"]}}',
        "application/merge-patch+json",
      ),
    );
    check(
      await sendOrThrow(server, `PATCH ${NUMBERS}/created`, `{"spec":{"free":${ODD}}}`, "application/merge-patch+json"),
      ODD,
    );
    check(
      await sendOrThrow(
        server,
        `PATCH ${NUMBERS}/created`,
        `[{"op":"replace","path":"/spec/free","value":${LEAST}}]`,
        "application/json-patch+json",
      ),
      LEAST,
    );
    check(await sendOrThrow(server, `DELETE ${NUMBERS}/created`), LEAST);
    check(await sendOrThrow(server, `GET ${NUMBERS}/created`), LEAST);
    const applied = `PATCH ${NUMBERS}/applied?fieldManager=a&force=true`;
    check(await sendOrThrow(server, applied, objectText("applied", spec), APPLY));
    const yaml = `apiVersion: exact.example.com/v1\nkind: Number\nmetadata: { name: applied }\nspec: { free: ${ODD}, list: [${VALUES.join(", ")}], raw: { a: ${LEAST}, b: [{ c: ${ODD}, d: ${EVEN} }] } }\n`;
    check(await sendOrThrow(server, applied, yaml, APPLY), ODD);
  });

  test("are kept in YAML, indented JSON, lists and watches", async () => {
    await using server = await startWithNumbers();
    await sendOrThrow(server, `POST ${NUMBERS}`, objectText("a", `"free":${LARGEST},"raw":{"a":${ODD}}`));
    const show = async (path: string, accept = "application/json") =>
      (await apiRequest(server, `GET ${path}`, { headers: { accept } })).text;
    for (const path of [`${NUMBERS}/a`, NUMBERS]) {
      const yaml = await show(path, "application/yaml");
      assert.match(yaml, `free: ${LARGEST}\n`);
      assert.match(yaml, `a: ${ODD}\n`);
      assert.match(await show(`${path}?pretty=true`), `"free": ${LARGEST}`);
    }
    const watched = await show(`${NUMBERS}?watch=true&timeoutSeconds=1`);
    assert.match(watched, `"free":${LARGEST}`);
  });

  test("count as changed if only the last digit differs", async () => {
    await using server = await startWithNumbers();
    const versionOf = (text: string) => /"resourceVersion":"(\d+)"/.exec(text)?.[1];
    const first = await sendOrThrow(server, `POST ${NUMBERS}`, objectText("a", `"free":${EVEN}`));
    const patch = (value: string) =>
      sendOrThrow(server, `PATCH ${NUMBERS}/a`, `{"spec":{"free":${value}}}`, "application/merge-patch+json");
    const second = await patch(ODD);
    assert.equal(integersAt(second, "free").at(-1), ODD);
    assert.not.equal(versionOf(second), versionOf(first));
    assert.equal(versionOf(await patch(ODD)), versionOf(second));
  });

  test("are rejected with 422 outside of int64, and accepted at its limits", async () => {
    await using server = await startWithNumbers();
    for (const value of [LARGEST, LEAST])
      await sendOrThrow(server, `POST ${NUMBERS}?dryRun=All`, objectText("a", `"free":${value}`));
    for (const value of ["9223372036854775808", "-9223372036854775809", "18446744073709551615"]) {
      const { status, text } = await send(server, `POST ${NUMBERS}?dryRun=All`, objectText("a", `"free":${value}`));
      assert.is(status, 422, text);
      assert.match(text, "spec.free in body must be of type int64");
    }
  });

  test("are kept in int64 fields of built-in kinds", async () => {
    await using server = await startTestApiServer();
    const path = "/api/v1/namespaces/default/pods";
    const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"exact"},"spec":{"activeDeadlineSeconds":5,
      "securityContext":{"fsGroup":5},"containers":[{"name":"a","image":"b"}],"terminationGracePeriodSeconds":${ODD},
      "tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":${LARGEST}}]}}`;
    const text = await sendOrThrow(server, `POST ${path}?dryRun=All`, pod);
    assert.match(text, `"terminationGracePeriodSeconds":${ODD}`);
    assert.match(text, `"tolerationSeconds":${LARGEST}`);
  });

  if (!isRealApiServer)
    test("are kept in a data folder across a restart", async () => {
      await using folder = await createTemporaryFolder();
      const { startApiServer } = await import("#apiserver/index.js");
      const start = () => startApiServer({ dataDir: folder.path });
      {
        await using server = await start();
        await createNumbers(server);
        await sendOrThrow(server, `POST ${NUMBERS}`, objectText("a", `"free":${LARGEST},"raw":{"a":${ODD}}`));
      }
      await using server = await start();
      assert.match(await sendOrThrow(server, `GET ${NUMBERS}/a`), `"free":${LARGEST}`);
      const labels = '{"metadata":{"labels":{"a":"b"}}}';
      const patched = await sendOrThrow(server, `PATCH ${NUMBERS}/a`, labels, "application/merge-patch+json");
      assert.match(patched, `"free":${LARGEST}`);
      assert.match(patched, `"raw":{"a":${ODD}}`);
      assert.equal(integersAt(await sendOrThrow(server, `POST ${NUMBERS}`, objectText("b", "")), "f2"), [LARGEST]);
    });
});

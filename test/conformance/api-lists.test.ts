import { apiRequest, type ApiObject } from "../support/api/api-request.js";
import { startTestApiServer, type TestApiServer } from "../support/api/api-server.js";
import { assert, suite } from "../support/suite.js";
import { CONFIG_MAPS, configMap, WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";

interface List {
  kind: string;
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: ApiObject[];
}

const namesOf = ({ items }: List) => items.map(({ metadata }) => metadata.name);

async function createAll(server: TestApiServer, ...names: string[]): Promise<void> {
  for (const name of names) await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name) });
}

async function list(server: TestApiServer, query = ""): Promise<List> {
  return (await apiRequest<List>(server, `GET ${CONFIG_MAPS}${query}`)).body;
}

suite("lists", (test) => {
  test("are ordered by key, and omit the kind of built-in items", async () => {
    await using server = await startTestApiServer({ crds: [widgetDefinition()] });
    await createAll(server, "b", "a0", "a.b", "a", "a-b");
    const maps = await list(server);
    assert.equal(namesOf(maps), ["a", "a-b", "a.b", "a0", "b"]);
    assert.equal([maps.kind, maps.items[0]?.kind], ["ConfigMapList", undefined]);
    assert.is(maps.metadata.continue, undefined);
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("w") });
    const widgets = await apiRequest<List>(server, `GET ${WIDGETS}`);
    assert.equal([widgets.body.items[0]?.kind, widgets.body.metadata.continue], ["Widget", ""]);
  });

  test("return all pages at one resourceVersion despite concurrent writes", async () => {
    await using server = await startTestApiServer();
    await createAll(server, "a", "b", "c", "d", "e");
    const first = await list(server, "?limit=2");
    assert.equal([namesOf(first), first.metadata.remainingItemCount], [["a", "b"], 3]);
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/c`);
    await createAll(server, "bb");
    const second = await list(server, `?limit=2&continue=${first.metadata.continue}`);
    assert.equal(namesOf(second), ["c", "d"]);
    assert.is(second.metadata.resourceVersion, first.metadata.resourceVersion);
    const third = await list(server, `?limit=2&continue=${second.metadata.continue}`);
    assert.equal([namesOf(third), third.metadata.continue], [["e"], undefined]);
  });

  test("reject invalid continue tokens, resource versions, limits and selectors with 400 or 422", async () => {
    await using server = await startTestApiServer();
    const cases: [string, number, string][] = [
      ["?continue=!!", 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"],
      ["?resourceVersion=abc", 400, "invalid resource version: resourceVersion: Invalid value"],
      ["?limit=many", 400, "strconv.ParseInt: parsing"],
      ["?resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"],
      ["?labelSelector=a%3Db%3Dc", 400, "found '=', expected: ',' or 'end of string'"],
      ["?fieldSelector=spec.foo%3Db", 400, "is not a known field selector"],
    ];
    for (const [query, status, text] of cases) {
      const answer = await apiRequest(server, `GET ${CONFIG_MAPS}${query}`);
      assert.is(answer.status, status, query);
      assert.match(answer.text, text);
    }
  });

  test("filter by label and field selectors, without remainingItemCount", async () => {
    await using server = await startTestApiServer();
    for (const [name, app] of Object.entries({ a: "x", b: "y", c: "x", d: "x" })) {
      await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap(name, {}, { labels: { app } }) });
    }
    const first = await list(server, "?labelSelector=app%3Dx&limit=2");
    assert.equal([namesOf(first), first.metadata.remainingItemCount], [["a", "c"], undefined]);
    assert.equal(namesOf(await list(server, "?fieldSelector=metadata.name%3Db")), ["b"]);
    assert.equal(namesOf(await list(server, "?labelSelector=app%20notin%20(x)")), ["b"]);
  });

  test("return past objects with resourceVersionMatch=Exact", async () => {
    await using server = await startTestApiServer();
    await createAll(server, "a", "b");
    const { metadata } = await list(server);
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/a`);
    const exact = `?resourceVersionMatch=Exact&resourceVersion=${metadata.resourceVersion}`;
    assert.equal(namesOf(await list(server, exact)), ["a", "b"]);
    assert.equal(namesOf(await list(server, `?resourceVersion=${metadata.resourceVersion}`)), ["b"]);
  });

  test("are returned as PartialObjectMetadata, Table or YAML by Accept header, else 406", async () => {
    await using server = await startTestApiServer();
    await createAll(server, "a");
    const accept = (form: string) =>
      apiRequest<List & { rows: { cells: unknown[] }[] }>(server, `GET ${CONFIG_MAPS}`, { headers: { accept: form } });
    const partial = await accept("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    const kinds = [partial.body.kind, ...partial.body.items.map(({ kind }) => kind)];
    assert.equal(kinds, ["PartialObjectMetadataList", "PartialObjectMetadata"]);
    const table = await accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    assert.equal([table.body.kind, table.body.rows[0]?.cells[0]], ["Table", "a"]);
    const yaml = await accept("application/yaml");
    assert.match(yaml.text, "kind: ConfigMapList");
    assert.is((await accept("application/xml")).status, 406);
    assert.is((await accept("application/vnd.kubernetes.protobuf,application/json")).status, 200);
  });
});

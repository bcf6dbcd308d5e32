import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { WIDGETS, widget, widgetDefinition } from "../support/api/api-fixtures.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../support/suite.js";
import { openWatch, type WatchEvent } from "../support/api/watch-client.js";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE = "application/merge-patch+json";

suite("deletion of a CRD", (test) => {
  test("deletes its objects, ends their watches, and returns 404 until the CRD is installed again", async () => {
    await using server = await startTestApiServer({ crds: [widgetDefinition()] });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("a") });
    await apiRequest(server, `POST ${WIDGETS}`, { body: widget("held", {}, { finalizers: ["example.com/hold"] }) });
    using watch = await openWatch(server, `${WIDGETS}?watch=true`);
    await apiRequest(server, `DELETE ${DEFINITIONS}/widgets.example.com`);
    await waitFor("a is gone", async () => (await apiRequest(server, `GET ${WIDGETS}/a`)).status === 404);
    // One of them is held: everything waits for it, and nothing new is taken.
    assert.is((await apiRequest(server, `GET ${WIDGETS}/held`)).status, 200);
    assert.is((await apiRequest(server, `POST ${WIDGETS}`, { body: widget("b") })).status, 403);
    await apiRequest(server, `PATCH ${WIDGETS}/held`, { body: { metadata: { finalizers: null } }, contentType: MERGE });

    const told: string[] = [];
    for (let event = await nextOf(watch); event !== undefined; event = await nextOf(watch))
      if (event.type !== "BOOKMARK") told.push(`${event.type} ${event.object.metadata.name}`);
    assert.equal(told.slice(0, 2).sort(), ["ADDED a", "ADDED held"]);
    assert.equal(
      told.slice(2).filter((line) => line.startsWith("DELETED")),
      ["DELETED a", "DELETED held"],
    );
    await waitFor("the kind is not served", async () => {
      const { status, text } = await apiRequest(server, `GET ${WIDGETS}`);
      return status === 404 && text === "404 page not found\n";
    });
    await waitFor("the definition is gone", async () => {
      return (await apiRequest(server, `GET ${DEFINITIONS}/widgets.example.com`)).status === 404;
    });

    assert.is((await apiRequest(server, `POST ${DEFINITIONS}`, { body: widgetDefinition() })).status, 201);
    await waitFor("the kind is served again", async () => {
      const { status, body } = await apiRequest(server, `GET ${WIDGETS}`);
      return status === 200 && body.items?.length === 0;
    });
    await waitFor("objects are taken again", async () => {
      return (await apiRequest(server, `POST ${WIDGETS}`, { body: widget("a") })).status === 201;
    });
  });
});

suite("names of a CRD", (test) => {
  test("are rejected with KindConflict while another CRD holds them, then accepted for one waiting CRD", async () => {
    await using server = await startTestApiServer();
    const definitionOf = (plural: string) => ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.names.example.com` },
      spec: {
        group: "names.example.com",
        scope: "Namespaced",
        names: { plural, singular: plural, kind: "Name", listKind: `${plural}List` },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
      },
    });
    const stateOf = async (plural: string) => {
      const { body } = await apiRequest(server, `GET ${DEFINITIONS}/${plural}.names.example.com`);
      const conditions = (body.status?.["conditions"] ?? []) as { type: string; status: string; reason: string }[];
      return conditions
        .filter(({ type }) => type === "NamesAccepted" || type === "Established")
        .map(({ type, status, reason }) => `${type} ${status} ${reason}`)
        .sort()
        .join(", ");
    };
    const taken = "Established True InitialNamesAccepted, NamesAccepted True NoConflicts";
    const refused = "Established False NotAccepted, NamesAccepted False KindConflict";
    for (const plural of ["firsts", "seconds", "thirds"]) {
      await apiRequest(server, `POST ${DEFINITIONS}`, {
        body: definitionOf(plural),
      });
      const wanted = plural === "firsts" ? taken : refused;
      await waitFor(`${plural} have their state`, async () => (await stateOf(plural)) === wanted);
    }
    await apiRequest(server, `DELETE ${DEFINITIONS}/firsts.names.example.com`);
    await waitFor("one of the others has the kind", async () => {
      return [await stateOf("seconds"), await stateOf("thirds")].filter((state) => state === taken).length === 1;
    });
    const [winner, loser] = (await stateOf("seconds")) === taken ? ["seconds", "thirds"] : ["thirds", "seconds"];
    await apiRequest(server, `DELETE ${DEFINITIONS}/${winner}.names.example.com`);
    await waitFor("the last one has the kind", async () => (await stateOf(loser!)) === taken);
  });
});

// A real server may end the stream properly or break it.
async function nextOf(watch: { next(): Promise<WatchEvent | undefined> }): Promise<WatchEvent | undefined> {
  try {
    return await watch.next();
  } catch {
    return undefined;
  }
}

// What `diff` says of a change of a CRD, beside what a real API server does with an object that was stored before it.
import { waitFor } from "#apiserver/wait-for.js";
import { crdWith, diffOf, readCrdChanges, schemaOf, type CrdChange } from "../support/crds/crd-changes.js";
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../support/api/api-request.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import type { ControlPlane } from "../support/machine/control-plane.js";
import { assert, shared, suite } from "../support/suite.js";

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const changes = readCrdChanges();

interface Placed {
  readonly change: CrdChange;
  readonly plural: string;
  readonly kind: string;
}

/** The schema of a side, with a field that shows which side the API server uses. */
function sideOf({ change, plural, kind }: Placed, side: "before" | "after"): object {
  const schema = schemaOf(change, side) as { properties: object };
  const side_ = { type: "object", properties: { side: { type: "string", default: side } }, default: {} };
  return crdWith({ ...schema, properties: { ...schema.properties, shown: side_ } }, { plural, kind });
}

/** What the API server does with an object that was stored before a change. */
interface Answers {
  /** A write that changes a label. */
  readonly label: number;
  /** The creation of an object with the same content, and a message if it fails. */
  readonly again: number;
  readonly message: string;
  readonly read: unknown;
}

/** Applies all changes to one API server: each CRD, an object, the changed CRD, and requests for the object. */
async function playAll(plane: ControlPlane): Promise<ReadonlyMap<string, Answers>> {
  const placed = changes.map((change, index) => ({ change, plural: `gadgets${index}`, kind: `Gadget${index}` }));
  const path = ({ plural }: Placed) => `/apis/example.com/v1/namespaces/default/${plural}`;
  for (const each of placed) await apiRequestOrThrow(plane, `POST ${crds}`, { body: sideOf(each, "before") });
  for (const each of placed) {
    const { change, kind } = each;
    const spec = "stored" in change ? { f: change.stored } : {};
    const body = { apiVersion: "example.com/v1", kind, metadata: { name: "stored" }, spec };
    await waitFor(`${kind} is served`, async () => {
      const answer = await apiRequest(plane, `POST ${path(each)}`, { body });
      if (answer.status !== 404 && answer.status !== 201) throw new Error(`${change.name}: ${answer.text}`);
      return answer.status === 201;
    });
  }
  for (const each of placed) {
    const live = await apiRequestOrThrow(plane, `GET ${crds}/${each.plural}.example.com`);
    const { spec } = sideOf(each, "after") as { spec: object };
    const answer = await apiRequest(plane, `PUT ${crds}/${each.plural}.example.com`, { body: { ...live, spec } });
    if (answer.status !== 200) throw new Error(`${each.change.name}: ${answer.text}`);
  }
  const answers = new Map<string, Answers>();
  for (const each of placed) {
    const { change, kind } = each;
    const read = () => apiRequestOrThrow<ApiObject & { shown?: { side: string } }>(plane, `GET ${path(each)}/stored`);
    await waitFor(`${kind} has its new schema`, async () => (await isNew(plane, each, path(each))) === true);
    const stored = await read();
    const labelled = { ...stored, metadata: { ...stored.metadata, labels: { a: "b" } } };
    const label = await apiRequest(plane, `PUT ${path(each)}/stored`, { body: labelled });
    const spec = "stored" in change ? { f: change.stored } : {};
    const body = { apiVersion: "example.com/v1", kind, metadata: { name: "again" }, spec };
    const again = await apiRequest(plane, `POST ${path(each)}?fieldValidation=Strict`, { body });
    answers.set(change.name, {
      label: label.status,
      again: again.status,
      message: again.status < 300 ? "" : again.text,
      read: (stored.spec as { f?: unknown } | undefined)?.f,
    });
  }
  return answers;
}

/** Tells whether the API server uses the changed schema: of a new object it fills in the new default. */
async function isNew(plane: ControlPlane, { kind }: Placed, path: string): Promise<boolean> {
  const probe = {
    apiVersion: "example.com/v1",
    kind,
    metadata: { name: "probe" },
    shown: {},
    data: "a",
    spec: { keep: "a" },
  };
  const { status, body } = await apiRequest<{ shown?: { side: string } }>(plane, `POST ${path}?dryRun=All`, {
    body: probe,
  });
  return status < 300 && body.shown?.side === "after";
}

function withoutLoss(read: unknown, stored: unknown): unknown {
  const isObject = typeof stored === "object" && !Array.isArray(stored);
  return isObject ? { ...(read as object), ...stored } : stored;
}

suite("CRD changes on kube-apiserver", (test) => {
  const answersOf = shared(async () => {
    await using plane = await borrowControlPlane();
    const answers = await playAll(plane);
    return Object.assign(answers, { [Symbol.asyncDispose]: async () => undefined });
  });

  for (const change of changes)
    test(
      `${change.name}: has the consequence that diff reports: ${change.says}`,
      async () => {
        const { label, again, message, read } = (await answersOf()).get(change.name)!;
        const said = `label ${label}, again ${again} ${message}, read ${JSON.stringify(read)}`;
        const consequences = diffOf(crdWith(schemaOf(change, "before")), crdWith(schemaOf(change, "after"))).map(
          ({ effect, consequence, message: text }) => `${effect} ${consequence}: ${text}`,
        );
        const context = `${said}\n${consequences.join("\n")}`;
        assert.is(label, change.says === "everyWriteRefused" ? 422 : 200, context);
        if (!("stored" in change)) return;
        if (change.says === "newValuesRefused") assert.ok(again >= 400, context);
        else if (change.says === "valuesDropped") assert.not.equal(read, change.stored, context);
        else if (change.says !== "everyWriteRefused") {
          assert.is(again, 201, context);
          // A default may have come besides.
          assert.equal(read, withoutLoss(read, change.stored), context);
        }
      },
      { timeoutMs: 180_000 },
    );
});

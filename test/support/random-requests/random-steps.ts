// Random sequences of requests for scenarios. Each sequence uses one kind with few names and field managers, so that its requests interact.
import fc, { type Arbitrary } from "../fast-check.js";
import type { Step } from "../conformance/conformance-scenario.js";
import type { RandomKind } from "./random-kind.js";

const name = fc.constantFrom("a", "a", "a", "b", "c");
const manager = fc.constantFrom("one", "two", "three");

type Query = Record<string, string | undefined>;

/** A sequence of requests for one kind, with a watch that observes all of them. */
export function randomSteps(maxLength: number, kinds: RandomKind[]): Arbitrary<Step[]> {
  return fc.constantFrom(...kinds).chain((kind) => {
    const requests = fc.array(randomRequest(kind), { minLength: 2, maxLength });
    return requests.map((steps) => [...observed(kind, steps)]);
  });
}

/** Adds a watch of all writes in the sequence, which ends with the creation of an object with a unique name. */
function observed(kind: RandomKind, steps: Step[]): Step[] {
  const last = { ...kind.base, ...typeOf(kind), metadata: { name: "zz-last" } };
  return [
    { method: "GET", target: kind.path, save: "start", silent: true },
    {
      method: "WATCH",
      target: `${kind.path}?watch=true&resourceVersion=\${start.metadata.resourceVersion}`,
      open: "all",
    },
    { method: "POST", target: `${kind.path}?fieldManager=one`, kind: kind.kind, body: objectOf(kind, "a", {}) },
    ...steps,
    { method: "POST", target: kind.path, kind: kind.kind, body: last, silent: true },
    { method: "EVENTS", target: "all", lastName: "zz-last" },
  ];
}

function typeOf({ apiVersion }: RandomKind): { apiVersion?: string } {
  return apiVersion === undefined ? {} : { apiVersion };
}

function objectOf(kind: RandomKind, objectName: string, part: object): object {
  return {
    ...typeOf(kind),
    ...(merge(kind.base, part) as object),
    metadata: { name: objectName, ...metadataOf(part) },
  };
}

function metadataOf(part: object): object {
  return (part as { metadata?: object }).metadata ?? {};
}

function merge(base: unknown, part: unknown): unknown {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    value !== null && typeof value === "object" && !Array.isArray(value);
  if (!isObject(base) || !isObject(part)) return part;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(part)) result[key] = key in base ? merge(base[key], value) : value;
  return result;
}

const metadata = fc.record(
  {
    labels: fc.dictionary(fc.constantFrom("l", "m", "example.com/n"), fc.constantFrom("x", "y", "", "z"), {
      maxKeys: 2,
    }),
    annotations: fc.dictionary(fc.constantFrom("o", "p"), fc.constantFrom("x", ""), { maxKeys: 2 }),
    finalizers: fc.constantFrom([], ["example.com/f"], ["example.com/f", "example.com/g"], ["odd"]),
    ownerReferences: fc.constantFrom(
      [],
      [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "u-1" }],
      [{ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "u-1", controller: true, blockOwnerDeletion: true }],
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);

/** A partial object, in some cases with metadata, and in few cases with one unusual value. */
function randomPart(kind: RandomKind): Arbitrary<object> {
  const withMetadata = fc
    .tuple(kind.part, metadata, fc.integer({ min: 0, max: 3 }))
    .map(([part, meta, chance]) => (chance === 0 ? { ...part, metadata: meta } : part));
  return fc.oneof(
    { weight: 6, arbitrary: withMetadata },
    { weight: 1, arbitrary: fc.tuple(withMetadata, fc.nat(), oddValue).map(odd) },
  );
}

const oddValue = fc.constantFrom<unknown>(
  null,
  "",
  [],
  {},
  -1,
  "odd value",
  true,
  [null],
  { unknown: 1 },
  1.5,
  undefined,
);

/** Replaces one value in an object; if the object itself is chosen, adds an unknown member instead. */
function odd([part, place, value]: [object, number, unknown]): object {
  const places = placesOf(part);
  const path = places[place % places.length] ?? [];
  const copy = structuredClone(part) as Record<string, unknown>;
  const key = path.at(-1);
  const parent = path.slice(0, -1).reduce<unknown>((at, member) => (at as Record<string, unknown>)[member], copy);
  if (key === undefined) copy["unknown"] = value;
  else (parent as Record<string, unknown>)[key] = value;
  return copy;
}

function placesOf(value: unknown, path: string[] = []): string[][] {
  if (value === null || typeof value !== "object") return [path];
  return [path, ...Object.entries(value).flatMap(([key, member]) => placesOf(member, [...path, key]))];
}

const dryRun = fc.constantFrom(undefined, undefined, undefined, undefined, undefined, undefined, undefined, "All");
const fieldValidation = fc.constantFrom(undefined, undefined, undefined, "Strict", "Warn", "Ignore");
const writeQuery: Arbitrary<Query> = fc.record({ fieldManager: manager, dryRun, fieldValidation });

function textOf(query: Query): string {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return entries.length === 0 ? "" : `?${entries.map(([key, value]) => `${key}=${value}`).join("&")}`;
}

function randomRequest(kind: RandomKind): Arbitrary<Step> {
  const part = randomPart(kind);
  const status = kind.status ?? fc.constant({});
  const statusPart = fc.oneof(
    { weight: 6, arbitrary: status },
    { weight: 1, arbitrary: fc.tuple(status, fc.nat(), oddValue).map(odd) },
  );
  const requests: { weight: number; arbitrary: Arbitrary<Step> }[] = [
    {
      weight: 3,
      arbitrary: fc.tuple(name, part, writeQuery).map(([on, body, query]) => createOf(kind, on, body, query)),
    },
    {
      weight: 3,
      arbitrary: fc.tuple(name, part, writeQuery).map(([on, body, query]) => updateOf(kind, on, body, query)),
    },
    {
      weight: 6,
      arbitrary: fc
        .tuple(name, part, writeQuery, fc.constantFrom(undefined, undefined, "true"))
        .map(([on, body, query, force]) =>
          applyOf(kind, on, { body, query, ...(force === undefined ? {} : { force }) }),
        ),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(name, part, writeQuery)
        .map(([on, body, query]) => patchOf(kind, on, { as: "merge", body, query })),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(name, part, writeQuery, directive)
        .map(([on, body, query, extra]) => patchOf(kind, on, { as: "strategic", body: extra(body), query })),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(name, jsonPatch(part), writeQuery)
        .map(([on, body, query]) => patchOf(kind, on, { as: "json-patch", body, query })),
    },
    { weight: 2, arbitrary: randomDelete(kind) },
    { weight: 1, arbitrary: randomDeleteCollection(kind) },
    { weight: 1, arbitrary: name.map((on) => ({ method: "GET", target: `${kind.path}/${on}` })) },
    { weight: 1, arbitrary: randomList(kind) },
  ];
  if (kind.status !== undefined)
    requests.push(
      {
        weight: 1,
        arbitrary: fc
          .tuple(name, statusPart, writeQuery, fc.constantFrom("merge", "strategic"))
          .map(([on, body, query, as]) => patchOf(kind, `${on}/status`, { as, body: { status: body }, query })),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(name, statusPart, writeQuery)
          .map(([on, body, query]) => applyOf(kind, on, { body: { status: body }, query, subresource: "/status" })),
      },
      {
        weight: 1,
        arbitrary: fc.tuple(name, statusPart, writeQuery).map(([on, body, query]) => ({
          ...updateOf(kind, on, { status: body }, query),
          target: `${kind.path}/${on}/status${textOf(query)}`,
        })),
      },
    );
  if (kind.scale === true) requests.push({ weight: 1, arbitrary: randomScale(kind) });
  return fc.oneof(...requests);
}

function createOf(kind: RandomKind, on: string, part: object, query: Query): Step {
  return { method: "POST", target: `${kind.path}${textOf(query)}`, kind: kind.kind, body: objectOf(kind, on, part) };
}

function updateOf(kind: RandomKind, on: string, part: object, query: Query): Step {
  return {
    method: "PUT",
    target: `${kind.path}/${on}${textOf(query)}`,
    kind: kind.kind,
    body: objectOf(kind, on, part),
  };
}

interface Patch {
  body: unknown;
  query: Query;
  as?: string;
  force?: string;
  subresource?: string;
}

function applyOf(kind: RandomKind, on: string, { body, query, force, subresource = "" }: Patch): Step {
  const target = `${kind.path}/${on}${subresource}${textOf({ ...query, force })}`;
  const applied = { ...typeOf(kind), ...(body as object), metadata: { name: on, ...metadataOf(body as object) } };
  return { method: "PATCH", target, as: "apply", kind: kind.kind, body: applied };
}

function patchOf(kind: RandomKind, on: string, { as, body, query }: Patch): Step {
  return { method: "PATCH", target: `${kind.path}/${on}${textOf(query)}`, ...(as === undefined ? {} : { as }), body };
}

/** Directives of strategic merge patches, added to the first nested object. */
const directive: Arbitrary<(part: object) => object> = fc
  .constantFrom<object>({}, {}, {}, { $patch: "replace" }, { $patch: "delete" }, { $retainKeys: ["a", "type"] })
  .map((extra) => (part: object) => {
    const [first, ...others] = Object.entries(part);
    if (first === undefined || Array.isArray(first[1]) || first[1] === null || typeof first[1] !== "object")
      return { ...part, ...extra };
    return { [first[0]]: { ...(first[1] as object), ...extra }, ...Object.fromEntries(others) };
  });

function jsonPatch(part: Arbitrary<object>): Arbitrary<object[]> {
  const operation = fc
    .tuple(part, fc.nat(), fc.constantFrom("add", "add", "replace", "remove", "test"), fc.boolean())
    .map(([source, place, op, isEnd]) => {
      const places = placesOf(source).filter((path) => path.length > 0);
      const path = places[place % Math.max(places.length, 1)] ?? ["metadata", "labels"];
      const value = path.reduce<unknown>((at, member) => (at as Record<string, unknown> | undefined)?.[member], source);
      const pointer = `/${path.map((member, index) => (isEnd && index === path.length - 1 && /^\d+$/.test(member) ? "-" : member.replaceAll("/", "~1"))).join("/")}`;
      return op === "remove" ? { op, path: pointer } : { op, path: pointer, value: value ?? {} };
    });
  return fc.array(operation, { minLength: 1, maxLength: 2 });
}

function randomDelete(kind: RandomKind): Arbitrary<Step> {
  const options = fc.record(
    {
      propagationPolicy: fc.constantFrom("Background", "Foreground", "Orphan"),
      gracePeriodSeconds: fc.constantFrom(0, 1, 30),
      preconditions: fc.constantFrom<object>({ uid: "other" }, { resourceVersion: "1" }, {}),
      dryRun: fc.constant(["All"]),
    },
    { requiredKeys: [], noNullPrototype: true },
  );
  return fc.tuple(name, fc.option(options)).map(([on, body]) => ({
    method: "DELETE",
    target: `${kind.path}/${on}`,
    ...(body === null ? {} : { body: { apiVersion: "v1", kind: "DeleteOptions", ...body } }),
  }));
}

function randomDeleteCollection(kind: RandomKind): Arbitrary<Step> {
  return fc
    .constantFrom("?labelSelector=l%3Dx", "?labelSelector=none", "?dryRun=All", "?fieldSelector=metadata.name=b", "")
    .map((query) => ({ method: "DELETE", target: `${kind.path}${query}` }));
}

function randomList(kind: RandomKind): Arbitrary<Step> {
  const query = fc.constantFrom(
    "",
    "?limit=1",
    "?labelSelector=l=x",
    "?labelSelector=l in (x,y)",
    "?labelSelector=!l",
    "?fieldSelector=metadata.name!=a",
    "?limit=2&resourceVersion=0",
  );
  const accept = fc.constantFrom(
    undefined,
    undefined,
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
  );
  return fc.tuple(query, accept).map(([text, form]) => ({
    method: "GET",
    target: `${kind.path}${text}`,
    ...(form === undefined ? {} : { accept: form }),
  }));
}

function randomScale(kind: RandomKind): Arbitrary<Step> {
  const replicas = fc.constantFrom(0, 1, 3, -1);
  const write = fc
    .tuple(name, replicas, writeQuery, fc.constantFrom("merge", "put", "apply"))
    .map(([on, value, query, how]): Step => {
      const target = `${kind.path}/${on}/scale${textOf(query)}`;
      const body = { spec: { replicas: value } };
      if (how === "merge") return { method: "PATCH", target, as: "merge", body };
      const scale = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: on }, ...body };
      return how === "put"
        ? { method: "PUT", target, body: scale }
        : { method: "PATCH", target, as: "apply", body: scale };
    });
  return fc.oneof(
    { weight: 1, arbitrary: name.map((on): Step => ({ method: "GET", target: `${kind.path}/${on}/scale` })) },
    { weight: 3, arbitrary: write },
  );
}

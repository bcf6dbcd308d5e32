// Random CRDs: schemas, versions, subresources, printer columns, and selectable fields.
import fc, { type Arbitrary } from "../fast-check.js";
import type { Crd } from "../api/api-server.js";
import type { RandomKind } from "./random-kind.js";
import { randomObject, type Shape } from "./random-schemas.js";
import { count, some } from "./random-values.js";

/** A CRD, and its versions as kinds for random requests. */
export interface RandomDefinition {
  crd: Crd;
  kinds: RandomKind[];
}

const GROUP = "random.example.com";

/** Returns a number of CRDs, which the seed determines. */
export function randomDefinitions(how: number, seed: number): RandomDefinition[] {
  return fc.sample(parts, { seed, numRuns: how }).map(definitionOf);
}

interface Parts {
  spec: Shape;
  otherSpec: Shape;
  status: Shape;
  hasStatus: boolean;
  hasScale: boolean;
  hasColumns: boolean;
  versions: 1 | 2;
}

const parts: Arbitrary<Parts> = fc.record({
  spec: randomObject(3),
  otherSpec: randomObject(2),
  status: randomObject(2),
  hasStatus: fc.boolean(),
  hasScale: fc.boolean(),
  hasColumns: fc.boolean(),
  versions: fc.constantFrom<1 | 2>(1, 1, 2),
});

function definitionOf(given: Parts, index: number): RandomDefinition {
  const plural = `things${index}`;
  const kind = `Thing${index}`;
  const names = ["v1", "v2"].slice(0, given.versions);
  const versions = names.map((name) => versionOf(given, name));
  const kinds = names.map((name): RandomKind => {
    const { hasStatus, hasScale, status } = given;
    const spec = name === "v1" ? given.spec : given.otherSpec;
    return {
      path: `/apis/${GROUP}/${name}/namespaces/$ns/${plural}`,
      kind,
      apiVersion: `${GROUP}/${name}`,
      base: { spec: {} },
      part: some({
        spec: fc
          .tuple(spec.value as Arbitrary<object>, some({ replicas: count }))
          .map(([value, more]) => (hasScale ? { ...value, ...more } : value)),
        ...(hasStatus ? {} : { status: status.value }),
      }),
      ...(hasStatus ? { status: status.value as Arbitrary<object> } : {}),
      ...(hasScale ? { scale: true } : {}),
    };
  });
  const crd = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: { group: GROUP, scope: "Namespaced", names: { plural, kind }, versions },
  };
  return { crd, kinds };
}

function versionOf({ spec, otherSpec, status, hasStatus, hasScale, hasColumns }: Parts, name: string) {
  const own = name === "v1" ? spec : otherSpec;
  // An empty spec must be valid, because the last object of a sequence has one.
  const {
    properties,
    required: _,
    ...rest
  } = own.schema as { properties: Record<string, { type?: string }> } & {
    required?: string[];
  };
  const replicas = hasScale ? { replicas: { type: "integer" } } : {};
  const statusProperties = (status.schema as { properties: object }).properties;
  const columns = Object.entries(properties).map(([member, { type = "string" }]) => ({
    name: member.toUpperCase(),
    type: ["string", "integer", "boolean", "number"].includes(type) ? type : "string",
    jsonPath: `.spec.${member}`,
  }));
  const selectable = Object.entries(properties).filter(([, { type = "" }]) =>
    ["string", "integer", "boolean"].includes(type),
  );
  return {
    name,
    served: true,
    storage: name === "v1",
    schema: {
      openAPIV3Schema: {
        type: "object",
        properties: {
          spec: { ...rest, properties: { ...properties, ...replicas } },
          status: { ...status.schema, properties: { ...statusProperties, ...replicas } },
        },
      },
    },
    ...(hasColumns ? { additionalPrinterColumns: columns } : {}),
    ...(hasColumns ? { selectableFields: selectable.map(([member]) => ({ jsonPath: `.spec.${member}` })) } : {}),
    subresources: {
      ...(hasStatus ? { status: {} } : {}),
      ...(hasScale ? { scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } } : {}),
    },
  };
}
